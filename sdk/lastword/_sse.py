"""Server-sent events out of bytes that may be cut anywhere.

The grammar is WHATWG HTML §9.2.6 "Interpreting an event stream": lines end in LF, CR or CRLF, one leading
BOM is dropped, ``:`` starts a comment, ``data`` lines are joined with LF, a block without ``data`` is no
event, and a block that the body's end cuts off is discarded.  Two things are ours: an event's size is
limited, and ``pending`` tells that the end cut a block off, so that the caller can say so.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Largest event accepted by default, in bytes of its lines together (SSE-9)."""

_BOM = b"\xef\xbb\xbf"
_CR, _LF = b"\r", b"\n"


class ServerSentEvent(NamedTuple):
    """One dispatched event: ``data`` (lines joined with LF) and ``event`` ("" where it has no name)."""

    data: str
    event: str = ""


class SSEDecoder:
    """Turns chunks of a ``text/event-stream`` body into events; holds no more than one unfinished event.

    ``feed`` never raises.  Once an event outgrows ``max_event_bytes`` (bytes), ``too_large`` becomes true and
    everything after it is ignored; the events before it have been returned.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.too_large = False
        self._limit = max_event_bytes
        self._start: bytes | None = b""  # what came so far, until it is known whether it is a BOM
        self._skip_lf = False  # the last chunk ended in CR; an LF that comes now belongs to it
        self._tail: list[bytes] = []  # a line whose end has not come yet, as it came: joining each time is O(n²)
        self._tail_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._event = b""

    @property
    def pending(self) -> bool:
        """Whether part of an event is held that no blank line has ended yet."""
        return bool(self._data or self._event or self._tail or self._start)

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that ``chunk`` completes, in order."""
        events: list[ServerSentEvent] = []
        if self._start is not None:
            chunk = self._strip_bom(chunk)
        if self._skip_lf and chunk:
            self._skip_lf = False
            chunk = chunk.removeprefix(_LF)
        if not chunk or self.too_large:
            return events
        self._skip_lf = chunk.endswith(_CR)
        lines = chunk.splitlines()
        tail = b"" if chunk.endswith((_CR, _LF)) else lines.pop()
        if self._tail and lines:
            lines[0] = b"".join((*self._tail, lines[0]))
            self._tail.clear()
            self._tail_size = 0
        for line in lines:
            if self._data_size + len(line) > self._limit:
                self._overflow()
                return events
            self._line(line, events)
        if tail:
            self._tail.append(tail)
            self._tail_size += len(tail)
            if self._data_size + self._tail_size > self._limit:
                self._overflow()
        return events

    def _strip_bom(self, chunk: bytes) -> bytes:
        start = (self._start or b"") + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(_BOM)

    def _overflow(self) -> None:
        self.too_large = True
        self._tail.clear()
        self._data.clear()

    def _line(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if line.startswith(b"data: "):  # nearly every line, so it comes first
            self._data.append(line[6:])
            self._data_size += len(line)
        elif not line:
            if self._data:
                data = b"\n".join(self._data).decode("utf-8", "replace")
                events.append(ServerSentEvent(data, self._event.decode("utf-8", "replace")))
                self._data.clear()
                self._data_size = 0
            self._event = b""
        else:
            name, _, value = line.partition(b":")  # a comment has no name, id and retry mean nothing here
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._data_size += len(line)
            elif name == b"event":
                self._event = value.removeprefix(b" ")
