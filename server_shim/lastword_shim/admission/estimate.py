"""How many tokens a prompt will have, before anybody has counted them: its size, at the rate of earlier ones.

An estimate reserves room until the engine tells the true length.  It should neither be so low that a burst gets in
which does not fit, nor so high that a picture, which is megabytes of base64 and a thousand tokens, keeps others out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MEDIA_TOKENS: Final = 1000
"""For a picture, a recording or a file: models differ widely, and most take between some hundred and two thousand."""
_FIRST_RATE: Final = 0.25  # tokens a byte, until something has been seen
_FIRST_WORTH: Final = 1024.0  # bytes of prompts that the first rate counts as
_REMEMBERED: Final = 65536.0  # bytes of prompts that the rate is taken from, roughly
_LEAST_TOLD: Final = 64  # bytes; what is smaller is mostly braces and the chat template
_LOWEST, _HIGHEST = 1 / 32, 1.5  # tokens a byte
_LEAST_MEDIA: Final = 1024  # bytes of base64; what is smaller may stay text
_SEARCHED_FROM: Final = 4096  # bytes; small bodies need no search
# What media begin with, by a part of it that most bodies do not have; some writers of JSON put a backslash before a slash.
_MEDIA: Final = {
    b";base64,": re.compile(rb"data:[\w.+/\\-]{0,80}(?:;[\w.=+\\-]{1,40}){0,3};base64,"),
    **{
        member: re.compile(member + rb'\s*:\s*"')
        for member in (
            *(b'"data"', b'"file_data"', b'"b64_json"', b'"image_url"'),
            *(b'"image_embeds"', b'"audio_embeds"', b'"prompt_embeds"'),
        )
    },
}
_NO_TEXT: Final = ("multipart/", "audio/", "image/", "video/", "application/octet-stream")


@dataclass(frozen=True, slots=True)
class Weight:
    """What can be seen of a body: bytes of text, JSON's own included, and how many pictures, recordings and files."""

    text: int = 0
    media: int = 0


def weigh(body: bytes, content_type: str) -> Weight:
    """Tell text from media, which are recognised by a data URL or by the name of their member."""
    if content_type.strip().lower().startswith(_NO_TEXT):
        return Weight(media=1)
    if len(body) < _SEARCHED_FROM:
        return Weight(text=len(body))
    sizes = [size for part, beginning in _MEDIA.items() if part in body for size in _media(body, beginning)]
    return Weight(text=len(body) - sum(sizes), media=len(sizes))


def _media(body: bytes, beginning: re.Pattern[bytes]) -> Iterator[int]:
    """Bytes of each string that goes on like base64 behind ``beginning``; each byte is looked at once."""
    found = beginning.search(body)
    while found is not None:
        start = found.end()
        end = body.find(b'"', start)
        end = len(body) if end < 0 else end
        is_url = b":" in body[start : start + 9]  # found by its own beginning, if it has data in it
        if end - start >= _LEAST_MEDIA and not is_url and body.find(b" ", start, end) < 0:
            yield end - start
        found = beginning.search(body, end)


class Rate:
    """Tokens per byte of text, learned from what the engine or the answers' usage said."""

    def __init__(self) -> None:
        self._bytes = _FIRST_WORTH
        self._tokens = _FIRST_WORTH * _FIRST_RATE

    def tokens(self, weight: Weight) -> int:
        """The estimate; at least 1."""
        return max(round(weight.text * self._tokens / self._bytes) + weight.media * MEDIA_TOKENS, 1)

    def learn(self, weight: Weight, tokens: int) -> None:
        """A prompt of this weight had so many tokens; nothing is learned where media had a share in them."""
        if weight.media or weight.text < _LEAST_TOLD or tokens < 1:
            return
        size = min(float(weight.text), _REMEMBERED / 4)  # one huge prompt does not speak for all
        rate = min(max(tokens / weight.text, _LOWEST), _HIGHEST)  # nor one that was told wrong
        kept = max(1.0 - size / _REMEMBERED, 0.0)
        self._bytes = self._bytes * kept + size
        self._tokens = self._tokens * kept + size * rate
