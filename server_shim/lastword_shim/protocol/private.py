"""What a caller sent that nobody else is to read, and how it is struck out of what others say: engines quote it."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from lastword_shim.protocol.parsing import uncollected

MOST_BODY: Final = 256 * 1024
"""Bytes that are kept of a body which is passed on in parts; of one that is read whole there is a copy anyway."""
LEAST: Final = 8
"""Characters of a value that is struck out wherever it stands; shorter ones are words like others."""
WINDOW: Final = 16
"""Characters that stand in a value too, somewhere, are struck out with all that goes on as it does there."""
_STEP: Final = WINDOW // 2
_MOST_VALUE: Final = 16 * 1024
_MOST_VALUES: Final = 64 * 1024
_MOST_LOOKS: Final = 64 * 1024
"""Lists, objects and strings that are looked at, and members of one of them: a body can be made of nothing else."""
_WORDS_OF_THE_PROTOCOL: Final = frozenset({"model", "role", "type", "tool_choice", "object", "status"})
_STRING: Final = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)("\s*:|"|\\?\Z)', re.DOTALL)
_LONGEST_ESCAPE: Final = 12  # of two halves
_STRUCK: Final = "<text>"


class Secrets:
    """One caller's keys, and its body as far as it is known.

    ``masked`` is for the log.  The body is looked at when that is asked for the first time, and in bounds: of each string
    the first 16 Ki characters, 64 Ki in all, where each string counts for 8 at least.  A quotation is found if it is of at
    least 23 characters, or of a whole string of at least 8.
    """

    def __init__(self, keys: tuple[str, ...] = ()) -> None:
        self.keys = keys
        self._body = b""
        self._forms: list[str] | None = None
        self._all = ""

    def read(self, part: bytes) -> None:
        """Part of the body has come."""
        if len(self._body) < MOST_BODY:
            self._body = self._body + part if self._body else part
            self._forms = None

    def without_keys(self, text: str) -> str:
        """The text without what the caller identified with."""
        for key in self.keys:
            text = text.replace(key, "<key>")
        return text

    def masked(self, text: str) -> str:
        """The text without the keys, and without what the body's strings say."""
        text = self.without_keys(text)
        if self._forms is None:
            with uncollected():
                self._forms = sorted(set(_forms(self._body)), key=len, reverse=True)
            self._all = "\0".join(self._forms)
        for form in self._forms:
            if len(form) < WINDOW + _STEP:
                text = text.replace(form, _STRUCK)
        return "".join(self._struck(text))

    def _struck(self, text: str) -> Iterator[str]:
        at = look = 0
        while look + WINDOW <= len(text):
            if text[look : look + WINDOW] not in self._all:
                look += _STEP
                continue
            start, end = look, self._end(text, look)
            while start > at and text[start - 1 : end] in self._all:
                start -= 1
            yield text[at:start] + _STRUCK
            at = look = end
        yield text[at:]

    def _end(self, text: str, start: int) -> int:
        """Where it ceases to be as in a value."""
        ends = range(start + WINDOW, len(text) + 1)
        return ends[bisect_left(ends, True, key=lambda end: text[start:end] not in self._all) - 1]


def _forms(body: bytes) -> Iterator[str]:
    """Each value, as itself and as Python and JSON write it: a message may hold any of them."""
    left = _MOST_VALUES
    for value in _values(body):
        kept = value[: min(left, _MOST_VALUE)]
        left -= max(len(kept), LEAST)
        if len(kept) >= LEAST:
            yield from (kept, repr(kept)[1:-1], ascii(kept)[1:-1], json.dumps(kept)[1:-1])
            yield repr(kept.encode("utf-8", "replace"))[2:-1]
        if left <= 0:
            return


def _values(body: bytes) -> Iterator[str]:
    """The strings in it, in their order, and those in JSON that is a string itself."""
    waiting = [_parsed(body)]
    if waiting == [None]:
        text = body.decode(json.detect_encoding(body), "replace")
        yield text
        yield from _told_apart(text)
    for _ in range(_MOST_LOOKS):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, str):
            yield value
            if value.startswith(("{", "[")):  # arguments of tools
                waiting.append(_parsed(value))
        elif isinstance(value, list):
            waiting.extend(reversed([one for one in value[:_MOST_LOOKS] if isinstance(one, str | list | dict)]))
        elif isinstance(value, dict):
            waiting.extend(
                reversed(
                    [one for name, one in islice(value.items(), _MOST_LOOKS) if name not in _WORDS_OF_THE_PROTOCOL]
                )
            )


def _told_apart(text: str) -> Iterator[str]:
    """The strings in JSON that is cut or broken; the last may be the half of one."""
    name = ""
    for string, end in (found.groups() for found in islice(_STRING.finditer(text), _MOST_LOOKS)):
        if end.endswith(":"):
            name = string
        elif name not in _WORDS_OF_THE_PROTOCOL:
            whole = (_parsed(f'"{string[: len(string) - cut]}"') for cut in range(_LONGEST_ESCAPE))
            yield next((value for value in whole if value is not None), string)


def _parsed(text: bytes | str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
