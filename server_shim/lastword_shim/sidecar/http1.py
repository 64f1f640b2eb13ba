"""One request and its answer as HTTP/1.1, without I/O: h11, and what a proxy needs to know beyond it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import h11

from lastword_shim.protocol.wire import Headers
from lastword_shim.sidecar.failures import Broken, Unreadable, failure_of

MAX_HEAD: Final = 65536
"""Largest head of an answer, or trailers, or line that says how large a chunk is; in bytes."""
MAX_INFORMATIONAL: Final = 16
"""Most answers of 1xx before the real one."""
MAX_STATUS: Final = 599
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Head:
    """An answer's status line and fields, names in lower case, as they came."""

    status: int
    fields: Headers


class Http1:
    """``head`` is the answer's once it is there, ``parts`` are those of its body that nobody has taken yet, ``done``
    tells that it is whole.

    What it raises are failures of the upstream: see ``failures``.
    """

    def __init__(self) -> None:
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        self._informational = 0
        self.head: Head | None = None
        self.parts: list[bytes] = []
        self.done = False

    @property
    def reusable(self) -> bool:
        """Whether the connection may serve another request: both sides have said all, and neither wants to close."""
        over = self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE
        return over and self._h11.trailing_data == (b"", False)

    def request(self, method: bytes, target: bytes, fields: Sequence[tuple[bytes, bytes]]) -> bytes:
        """The request's head as bytes; ``fields`` say how its body is framed."""
        return self._send(h11.Request(method=method, target=target, headers=list(fields)))

    def body(self, data: bytes) -> bytes:
        """Part of its body as bytes."""
        return self._send(h11.Data(data=data)) if data else b""

    def end(self) -> bytes:
        """Its end as bytes."""
        return self._send(h11.EndOfMessage())

    def feed(self, data: bytes) -> None:
        """Bytes have come.  What they hold before something that cannot be read still counts."""
        self._h11.receive_data(data)
        self._read()

    def eof(self) -> None:
        """The upstream has closed.  Raises ``Broken`` where more was to come."""
        if self.done:
            return
        try:
            self._h11.receive_data(b"")
            self._read()
        except Unreadable as error:  # in the library's own words, of states and roles
            raise self._cut() from error
        if not self.done:
            raise self._cut()

    def _cut(self) -> Broken:
        return Broken(f"it closed before {'its answer was whole' if self.head is not None else 'it answered'}")

    def _send(self, event: h11.Event) -> bytes:
        try:
            return self._h11.send(event) or b""
        except h11.LocalProtocolError as error:
            raise failure_of(error, connecting=False) from error

    def _read(self) -> None:
        try:
            while not self.done:
                event = self._h11.next_event()
                if isinstance(event, h11.Data):
                    self.parts.append(bytes(event.data))
                elif isinstance(event, h11.Response):
                    self.head = _head(event)
                elif isinstance(event, h11.InformationalResponse):
                    self._informational += 1
                    if self._informational > MAX_INFORMATIONAL:
                        raise Unreadable(f"more than {MAX_INFORMATIONAL} answers of 1xx")
                elif isinstance(event, h11.EndOfMessage):
                    self.done = True  # trailers, if any, are dropped (RFC 9110 §6.5.1)
                else:
                    return
        except h11.RemoteProtocolError as error:
            raise failure_of(error, connecting=False) from error


def _head(answer: h11.Response) -> Head:
    """What h11 lets pass and a server in front would not put on the wire is no answer either (RFC 9110 §5.5, §15)."""
    fields = [(bytes(name), bytes(value)) for name, value in answer.headers]
    if answer.status_code > MAX_STATUS:
        raise Unreadable(f"the status {answer.status_code}")
    for name, value in fields:
        if _CONTROL.search(value):
            raise Unreadable(f"a control character in the field {name.decode('latin-1')!r}")
    return Head(answer.status_code, fields)
