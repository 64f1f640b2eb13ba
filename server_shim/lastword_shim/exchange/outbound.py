"""The answer of one exchange: what the application says, held until it is known what it is, and what leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Protocol

from lastword._classify import ErrorInfo, make_error
from lastword._codes import Code
from lastword_shim.engine import Ticket
from lastword_shim.exchange.gate import Gate
from lastword_shim.protocol.ask import Ask
from lastword_shim.protocol.encodings import Inflating, Unreadable, is_plain
from lastword_shim.protocol.endings import error_response, with_request_id
from lastword_shim.protocol.judging import is_event_stream, reading_of
from lastword_shim.protocol.readings import PassReading, Reading, Verdict, WholeReading
from lastword_shim.protocol.wire import OTHER, Headers, Send, by_name

_FRAMING: Final = frozenset({b"content-length", b"content-encoding"})


class Take(Protocol):
    """`Reading.feed`, or what unpacks the body for it."""

    def __call__(self, body: bytes, *, last: bool) -> tuple[bytes, Verdict | None]:
        """What may leave, and the verdict once there is one."""


class Outbound:
    """One answer.  ``reading`` is None until the application has begun it."""

    take: Take
    """Read part of the application's body: what may leave of it, and the verdict once there is one.  Once it has begun."""
    leave: Callable[[bytes], Awaitable[None]]
    """Send what may leave."""

    def __init__(self, send: Send, ticket: Ticket, *, request_id: str, on_content: Callable[[], None]) -> None:
        self._ticket = ticket
        self._request_id = request_id
        self._on_content = on_content
        self._gate = Gate(send)
        self.leave = self._gate.write  # these two are called for each chunk: no frame between
        self._headers: Headers = []
        self._status = 200
        self._kind = OTHER
        self.reading: Reading | None = None
        self.is_events = False

    @property
    def busy(self) -> bool:
        """Whether a write waits for the client."""
        return self._gate.busy

    @property
    def status(self) -> int | None:
        """The status that left; None if none did."""
        return self._gate.status

    @property
    def headers(self) -> Headers:
        """The application's own headers, empty before it answers."""
        return self._headers

    def open(self, message: MutableMapping[str, Any], ask: Ask) -> None:
        """The application begins its answer; nothing leaves yet."""
        self._gate.opening = self._success
        self._status = message["status"]
        self._kind = ask.kind
        self._headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
        headers = by_name(self._headers)
        self.is_events = is_event_stream(headers, ask)
        self.reading = reading_of(
            ask, self._status, headers, engine_says=self._ticket.finish_reasons, on_content=self._on_content
        )
        self.take = self.reading.feed
        if not isinstance(self.reading, PassReading):  # what leaves may not be what came
            encoding = headers.get("content-encoding", "")
            if not is_plain(encoding) and self._status < 400:  # of an error's body nothing leaves
                self.take = self._inflated(Inflating(encoding), self.reading)
            self._headers = [(name, value) for name, value in self._headers if name.lower() not in _FRAMING]

    def _inflated(self, inflating: Inflating, reading: Reading) -> Take:
        def take(body: bytes, *, last: bool) -> tuple[bytes, Verdict | None]:
            try:
                return reading.feed(inflating.feed(body), last=last)
            except Unreadable as error:
                said = f"the answer cannot be read: {error}"
                return b"", reading.cut(make_error(Code.MALFORMED_RESPONSE, said))

        return take

    async def stop_holding(self) -> None:
        """Let the status line out: the client may wait for it, and no event has come to tell another."""
        await self.leave(b"")

    async def succeed(self, last: bytes) -> None:
        """End as the application wished."""
        if isinstance(self.reading, WholeReading):
            self._headers.append((b"content-length", str(len(last)).encode()))
        await self._gate.finish(last)

    async def fail(self, error: ErrorInfo, status: int, *, kind: str, inner_headers: Headers, patience: float) -> bool:
        """End with an error: as an answer of its own, or as the stream's last event; False if it could not be said.

        Half a body of another type has no place for an error; leaving it without its end tells.
        """
        try:
            async with asyncio.timeout(patience):
                if not self._gate.started:
                    headers, body = error_response(error, inner_headers, kind=kind)
                    self._gate.opening = lambda: (status, headers)
                    return await self._gate.finish(body)
                event = self.reading.ending(error) if self.reading is not None else None
                if event is not None:
                    return await self._gate.finish(event)
        except (TimeoutError, OSError):  # the client does not read, or has just left
            return False
        finally:
            self._gate.close()
        return False

    def close(self) -> None:
        """Let nothing more out."""
        self._gate.close()

    def _success(self) -> tuple[int, Headers]:
        extra: Headers = []
        effective, asked = self._ticket.effective_max_tokens, self._ticket.max_tokens
        if effective is not None and asked is not None and effective < asked:
            extra.append((b"x-lastword-effective-max-tokens", str(effective).encode()))
        return self._status, with_request_id([*self._headers, *extra], self._request_id, kind=self._kind)
