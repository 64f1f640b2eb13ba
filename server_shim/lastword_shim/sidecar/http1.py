"""One request and its answer as HTTP/1.1, without I/O: h11 writes the request and reads the answer's head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import h11

from lastword_shim.protocol.wire import Headers
from lastword_shim.sidecar.failures import Broken, Unreadable, failure_of
from lastword_shim.sidecar.framing import Chunked, Framing, Sized, UntilClose

MAX_HEAD: Final = 65536
"""Largest head of an answer, in bytes."""
MAX_INFORMATIONAL: Final = 16
"""Most answers of 1xx before the real one."""
_NO_BODY: Final = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class Head:
    """An answer's status line and fields, names in lower case, as they came."""

    status: int
    fields: Headers


class Http1:
    """``parts`` are those of the answer's body that nobody has taken yet.

    What it raises are failures of the upstream: see ``failures``.
    """

    def __init__(self) -> None:
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        self._framing: Framing | None = None
        self._method = b""
        self._informational = 0
        self._closing = False
        self.head: Head | None = None
        self.parts: list[bytes] = []

    @property
    def done(self) -> bool:
        """Whether the answer is whole."""
        return self._framing is not None and self._framing.done

    @property
    def reusable(self) -> bool:
        """Whether the connection may serve another request: both sides have said all, and neither wants to close."""
        framing = self._framing
        if framing is None or not framing.done or framing.left_over or self._closing:
            return False
        return framing.reusable and self._h11.our_state is h11.DONE

    def request(self, method: bytes, target: bytes, fields: Sequence[tuple[bytes, bytes]]) -> bytes:
        """The request's head as bytes; ``fields`` say how its body is framed."""
        self._method = method
        return self._send(h11.Request(method=method, target=target, headers=list(fields)))

    def body(self, data: bytes) -> bytes:
        """Part of its body as bytes."""
        return self._send(h11.Data(data=data)) if data else b""

    def end(self) -> bytes:
        """Its end as bytes."""
        return self._send(h11.EndOfMessage())

    def feed(self, data: bytes) -> None:
        """Bytes have come."""
        if self._framing is None:
            self._h11.receive_data(data)
            self._read_head()
        else:
            self._framing.feed(data, self.parts)

    def eof(self) -> None:
        """The upstream has closed.  Raises ``Broken`` where more was to come."""
        self._closing = True
        if self._framing is None:
            raise Broken("the connection closed before the answer")
        self._framing.eof()

    def _send(self, event: h11.Event) -> bytes:
        try:
            return self._h11.send(event) or b""
        except h11.LocalProtocolError as error:
            raise failure_of(error, connecting=False) from error

    def _read_head(self) -> None:
        while self._framing is None:
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError as error:
                raise failure_of(error, connecting=False) from error
            if isinstance(event, h11.Response):
                self._begin(event)
            elif isinstance(event, h11.InformationalResponse):
                self._informational += 1
                if event.status_code == 101 or self._informational > MAX_INFORMATIONAL:
                    raise Unreadable(f"status {event.status_code} where an answer was due")
            else:
                return

    def _begin(self, response: h11.Response) -> None:
        fields = [(bytes(name), bytes(value)) for name, value in response.headers]
        given = dict(fields)
        self.head = Head(response.status_code, fields)
        # As h11 does: it has refused two lengths that differ, and codings other than chunked (RFC 9112 §6.3).
        if self._method == b"HEAD" or response.status_code in _NO_BODY:
            self._framing = Sized(0)
        elif b"transfer-encoding" in given:
            self._framing = Chunked()
        elif b"content-length" in given:
            self._framing = Sized(int(given[b"content-length"]))
        else:
            self._framing = UntilClose()
        options = b",".join(value for name, value in fields if name == b"connection").lower()
        asked = {option.strip() for option in options.split(b",")}
        self._closing = b"close" in asked or response.http_version < b"1.1"
        rest, _ = self._h11.trailing_data
        self._framing.feed(rest, self.parts)
