"""Text of others made fit to be printed: what servers and adapters say may hold anything."""

from __future__ import annotations

import re
from typing import Final

MOST_CHARACTERS: Final = 600  # of a text that is shown or reported: some vectors have events of 300 KB

# Control characters but tab and newline, lone surrogates, non-characters, and what makes text invisible or turns it round.
_AWKWARD: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff]"
)


def printable(text: str) -> str:
    r"""Show what a terminal or an XML file would not take as an escape: ``\x1b``, ``\u202e``."""
    return _AWKWARD.sub(lambda found: ascii(found[0])[1:-1], text)


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Keep the beginning of a text that is too long to be read, and say how much was left out."""
    kept = most - 40  # with the note it is no longer than what is not cut
    return text if len(text) <= most else f"{text[:kept]}… ({len(text) - kept} characters more)"


def json_safe(text: str) -> str:
    """Escape the same characters in a JSON text, where the tab and the newline are escaped already."""
    return _AWKWARD.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
