"""Answers that come compressed: what is judged must be read."""

from __future__ import annotations

import zlib
from typing import Final

MAX_ERROR_BYTES: Final = 1024 * 1024
"""How much of an error's body is read; the rest tells nothing more."""
MAX_INFLATED: Final = 64 * 1024 * 1024
"""Bytes that a compressed answer may have; a kilobyte can claim a megabyte."""
_PLAIN: Final = frozenset({"", "identity"})
_KNOWN: Final = frozenset({"gzip", "x-gzip", "deflate"})
_EITHER: Final = zlib.MAX_WBITS | 32  # gzip or zlib, whichever it is


def is_plain(encoding: str) -> bool:
    """Whether a ``content-encoding`` says that there is none."""
    return encoding.strip().lower() in _PLAIN


class Unreadable(ValueError):
    """What came is not compressed as it says, or too large, or nobody here knows how."""


class Inflating:
    """One compressed body being read.  One that is cut gives what has come of it: whether that is whole is for its
    reader to say."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        self._zlib = zlib.decompressobj(_EITHER)
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """More of it.

        Raises:
            Unreadable: it cannot be read.
        """
        if self._encoding not in _KNOWN:
            raise Unreadable(f"it is encoded as {self._encoding[:40]!r}, which was not asked for")
        found = bytearray()
        try:
            while data:
                if self._zlib.eof:  # another member (RFC 1952 §2.2)
                    self._zlib = zlib.decompressobj(_EITHER)
                found += self._zlib.decompress(data, MAX_INFLATED + 1 - self._size - len(found))
                if self._size + len(found) > MAX_INFLATED:
                    raise Unreadable(f"it is larger than {MAX_INFLATED} bytes")
                data = self._zlib.unused_data
        except zlib.error as error:
            raise Unreadable(f"it is not encoded as {self._encoding!r}") from error
        self._size += len(found)
        return bytes(found)


def decoded(body: bytes, encoding: str) -> bytes:
    """An error's body without its compression, at most `MAX_ERROR_BYTES` of it; empty where it cannot be read."""
    if is_plain(encoding):
        return body
    if encoding.strip().lower() not in _KNOWN:
        return b""
    try:
        return zlib.decompressobj(_EITHER).decompress(body, MAX_ERROR_BYTES)
    except zlib.error:
        return b""
