"""The event that differs from the one before it only in its text, which is what most of a stream consists of.

Reading each as JSON is what the shim would spend most of its time on.  So one that was read in full is taken for a
pattern, a head and a tail with a JSON string between them; what is the same head, another string and the same tail has
the same members, and only its text is another.  Nothing is assumed of how an engine writes its events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

# The inside of a JSON string (RFC 8259, section 7) in one line.  Atomic: there is one way only to read it.
_INSIDE: Final = rb'(?>[^"\\\x00-\x1f]+|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*'
_TEXT: Final = re.compile(rb'"(?:content|text)"\s*:\s*"(' + _INSIDE + rb')"')
_IS_INSIDE: Final = re.compile(_INSIDE)
_PLAIN: Final = bytes(range(0x20, 0x7F)).translate(None, b'"\\')
"""What stands for itself in a JSON string; most texts have nothing else, and that is seen sooner."""
_LONGEST: Final = 64 * 1024
_UNUSED: Final = 4
"""Patterns in a row that nothing was the same as; then this stream's events differ in more than their text."""


class Sameness:
    """Knows one pattern at a time."""

    def __init__(self) -> None:
        self._head = self._tail = b""
        self._unused = 0

    def text_of(self, body: bytes) -> bytes | None:
        """The text of ``body``, as JSON has it, where that is one whole event that differs from the one learned in
        nothing else; None if it may be anything."""
        head, tail = self._head, self._tail
        if not head or not body.startswith(head) or not body.endswith(tail) or len(body) > _LONGEST:
            return None
        if len(body) < len(head) + len(tail):
            return None
        inside = body[len(head) : len(body) - len(tail)]
        if inside.translate(None, _PLAIN) and not _IS_INSIDE.fullmatch(inside):
            return None
        self._unused = 0
        return inside

    def forget(self) -> None:
        """What came last was something else."""
        self._head = b""

    def learn(self, body: bytes, chunk: Mapping[str, Any]) -> None:
        """``body`` was one whole event, read as ``chunk``.  It becomes the pattern if all that it does is to add text,
        be it none: a token may be half a character."""
        self._head = b""
        if self._unused > _UNUSED or not _only_adds_text(chunk) or not _is_one_line(body):
            return
        found = _TEXT.search(body)
        if found is None:
            return
        head, tail = body[: found.start(1)], body[found.end(1) :]
        if _differs_only_there(head, tail, chunk):
            self._head, self._tail = head, tail
            self._unused += 1


def _only_adds_text(chunk: Mapping[str, Any]) -> bool:
    choices = chunk.get("choices")
    if chunk.get("usage") or not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return False
    choice = choices[0]
    delta, text = choice.get("delta"), choice.get("text")
    if choice.get("finish_reason"):
        return False
    if isinstance(delta, dict) and not text:
        says = {name for name, value in delta.items() if value and name != "role"}
        return says <= {"content"} and isinstance(delta.get("content"), str)
    return delta is None and isinstance(text, str)


def _is_one_line(body: bytes) -> bool:
    return body.startswith(b"data:") and body.endswith(b"\n\n") and body.count(b"\n") == 2 and b"\r" not in body


def _differs_only_there(head: bytes, tail: bytes, chunk: Mapping[str, Any]) -> bool:
    """Whether another text there makes the same chunk with that text: the place found might have been another's."""
    try:
        other = json.loads((head + b"?" + tail).removeprefix(b"data:"))
    except (ValueError, RecursionError):
        return False
    for choice, known in zip(other["choices"], chunk["choices"], strict=True):
        holder, member = (choice, "text") if choice.get("text") else (choice["delta"], "content")
        if holder[member] != "?":
            return False
        holder[member] = known["text"] if member == "text" else known["delta"]["content"]
    return bool(other == chunk)
