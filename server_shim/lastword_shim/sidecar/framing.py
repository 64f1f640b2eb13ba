"""Where the body of an answer ends (RFC 9112 §6): bytes in, the body's bytes out at once, whole chunks or not.

h11 reads the heads; it would do this too, at several times the price for each token of a stream.  No I/O.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from lastword_shim.sidecar.failures import Broken, Unreadable

MAX_LINE: Final = 4096
"""Longest line that says how large a chunk is, extensions included, in bytes."""
MAX_TRAILERS: Final = 65536
"""Most bytes of trailer fields, which are read and dropped (RFC 9110 §6.5.1)."""
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?\r\n")
_TRAILER: Final = re.compile(rb"[!#-'*+\-.^-z|~0-9A-Z]+:[^\x00-\x08\x0a-\x1f\x7f]*\r\n")


class Framing(Protocol):
    """One body being received."""

    done: bool
    """Whether it is whole."""
    left_over: bool
    """Whether bytes came after its end, which nobody has asked for."""
    reusable: bool
    """Whether the connection can serve another request once it is done."""

    def feed(self, data: bytes, parts: list[bytes]) -> None:
        """Add those of the body that ``data`` holds to ``parts``, also where ``Unreadable`` is raised about the rest."""

    def eof(self) -> None:
        """The upstream has closed.  Raises ``Broken`` where more was to come."""


class Sized:
    """So many bytes, also none."""

    reusable = True

    def __init__(self, length: int) -> None:
        self._left = length
        self._length = length
        self.done = length == 0
        self.left_over = False

    def feed(self, data: bytes, parts: list[bytes]) -> None:
        """Up to the announced length."""
        self.left_over = len(data) > self._left
        part = data[: self._left]
        self._left -= len(part)
        self.done = self._left == 0
        if part:
            parts.append(part)

    def eof(self) -> None:
        """Whole only if nothing is left."""
        if not self.done:
            raise Broken(f"the connection closed after {self._length - self._left} of {self._length} bytes")


class UntilClose:
    """Whatever comes until the connection closes: nothing here tells a whole body from half of one."""

    reusable = False

    def __init__(self) -> None:
        self.done = False
        self.left_over = False

    def feed(self, data: bytes, parts: list[bytes]) -> None:
        """All of it."""
        if data:
            parts.append(data)

    def eof(self) -> None:
        """The end."""
        self.done = True


class Chunked:
    """Transfer-Encoding: chunked.  Extensions and trailer fields are dropped."""

    reusable = True

    def __init__(self) -> None:
        self.done = False
        self.left_over = False
        self._held = b""
        self._left = 0  # of the chunk that has begun
        self._ending = False  # the line end after a chunk is due
        self._trailers = -1  # bytes of them so far, once the last chunk has come

    def feed(self, data: bytes, parts: list[bytes]) -> None:
        """The data of all chunks, as far as it has come."""
        if self._held:
            data, self._held = self._held + data, b""
        at, end = 0, len(data)
        while at < end and not self.done:
            if self._left:
                part = data[at : at + self._left]
                parts.append(part)
                at += len(part)
                self._left -= len(part)
                self._ending = self._left == 0
                continue
            if self._ending and data.startswith(b"\r\n", at):  # the usual case, without a search
                at += 2
                self._ending = False
                continue
            newline = data.find(b"\n", at, at + MAX_LINE)
            if newline < 0:
                self._hold(data[at:])
                return
            self._line(data[at : newline + 1])
            at = newline + 1
        self.left_over = at < end

    def eof(self) -> None:
        """Whole only after the last chunk."""
        if not self.done:
            raise Broken("the connection closed before the last chunk")

    def _hold(self, rest: bytes) -> None:
        if len(rest) >= MAX_LINE:
            raise Unreadable(f"a line of more than {MAX_LINE} bytes where the size of a chunk was due")
        self._held = rest

    def _line(self, line: bytes) -> None:
        if self._ending:
            if line != b"\r\n":
                raise Unreadable("a chunk is longer than its size")
            self._ending = False
        elif self._trailers >= 0:
            self._trailers += len(line)
            self.done = line == b"\r\n"
            if self._trailers > MAX_TRAILERS or not (self.done or _TRAILER.fullmatch(line)):
                raise Unreadable(f"no trailer field, or more than {MAX_TRAILERS} bytes of them")
        else:
            size = _SIZE.fullmatch(line)
            if size is None:
                raise Unreadable("no size where that of a chunk was due")
            self._left = int(size[1], 16)
            if not self._left:
                self._trailers = 0
