"""One request of a caller's connection as ASGI has it, and its answer on the wire."""

from __future__ import annotations

import asyncio
import http
import re
from typing import Final, Protocol

from lastword._classify import ErrorInfo, make_error
from lastword._codes import CODES, Code
from lastword_shim.admission.refusals import Refusal
from lastword_shim.protocol.redact import NOTHING
from lastword_shim.protocol.settling import answer_alone, unexpected
from lastword_shim.protocol.wire import App, Headers, Message, Scope

OVER: Final = "lastword.over"
"""Where the scope has an event that is set once no more of the request comes: its client has left, or its body is none.
For whoever waits for something else than the next part of it."""
EVERY_ANSWER: Final = b"HTTP/1.1 "
"""What every answer begins with."""
_NO_NAME: Final = re.compile(rb'[\x00-\x20\x7f()<>@,;:\[\]={}"\\]')
_NO_VALUE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_BODILESS: Final = frozenset({204, 304})
_PHRASES: Final = {status.value: status.phrase.encode() for status in http.HTTPStatus}


class Wire(Protocol):
    """What it needs of the connection."""

    @property
    def stuck(self) -> bool:
        """Whether the client does not read."""

    def write(self, data: bytes) -> None:
        """Send."""

    def resume_reading(self) -> None:
        """There is room for more of the body."""

    async def drain(self) -> None:
        """Wait while the client does not read."""

    def finished(self, served: Served) -> None:
        """The answer is whole."""

    def cut(self, *, hard: bool) -> None:
        """The answer has begun and goes no further; ``hard`` where an end would pass for its own."""


def head_of(status: int, fields: Headers) -> bytes:
    """The head of an answer.  Raises ``ValueError`` where a field cannot be sent."""
    lines = [EVERY_ANSWER + b"%d %b\r\n" % (status, _PHRASES.get(status, b""))]
    for name, value in fields:
        if not name or _NO_NAME.search(name) or _NO_VALUE.search(value):
            raise ValueError("a field of the answer cannot be sent as it is")
        lines += (name.lower(), b": ", value, b"\r\n")
    return b"".join((*lines, b"\r\n"))


class Served:
    """``whole``: its body has come.  ``begun`` and ``complete`` are its answer."""

    def __init__(self, wire: Wire, scope: Scope, *, keep_alive: bool, expects: bool) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.whole = self.begun = self.complete = False
        self._wire = wire
        self._expects = expects
        self._over = asyncio.Event()
        self._news = asyncio.Event()
        self._body = bytearray()
        self._end_given = self._gone = False
        self._fault: Refusal | None = None
        self._chunked = self._bodiless = False
        self._left: int | None = None  # bytes of the answer's body that are to come, where that is known
        scope[OVER] = self._over

    @property
    def held(self) -> int:
        """Bytes of its body that nobody has taken yet."""
        return len(self._body)

    @property
    def is_current(self) -> bool:
        """Whether its client knows of chunks."""
        return bool(self.scope["http_version"] == "1.1")

    # What the connection tells.

    def feed(self, body: bytes) -> None:
        """Part of its body."""
        self._body += body
        self._news.set()

    def end(self) -> None:
        """Its body is whole."""
        self.whole = True
        self._news.set()

    def leave(self) -> None:
        """The client has left."""
        self._gone = True
        self._stop()

    def fail(self, error: ErrorInfo) -> None:
        """The rest of its body is none."""
        self._fault = Refusal(error)
        self._stop()

    def _stop(self) -> None:
        self._over.set()
        self._news.set()

    # What the application has.

    async def run(self, app: App) -> None:
        """Serve it; one that gets no answer from the application is told so."""
        error: ErrorInfo | None = None
        try:
            await app(self.scope, self.receive, self.send)
        except asyncio.CancelledError:
            if not self.complete:
                self._wire.cut(hard=True)
            raise
        except Refusal as refusal:
            error = refusal.error
        except Exception as problem:  # noqa: BLE001 (whatever it is, the caller is told)
            error = unexpected(problem, "", secrets=NOTHING)
        if self.complete or self._gone:
            return
        if self.begun:
            self._wire.cut(hard=self._wire.stuck or (not self._chunked and self._left is None))
            return
        if error is None and self._fault is not None:
            error = self._fault.error
        code = Code.INTERNAL_SERVER_ERROR
        status, fields, body = answer_alone(error or make_error(code, CODES[code].brief, origin="shim"))
        await self.send({"type": "http.response.start", "status": status, "headers": fields})
        await self.send({"type": "http.response.body", "body": body})

    async def receive(self) -> Message:
        """ASGI's.  Raises ``Refusal`` once the rest of the body cannot come."""
        if self._expects and not (self._body or self.whole or self.begun or self._gone):
            self._expects = False
            self._wire.write(EVERY_ANSWER + b"100 Continue\r\n\r\n")
        while not (self._gone or self.complete):
            if self._fault is not None:
                raise self._fault
            if self._body or (self.whole and not self._end_given):
                self._end_given = self.whole
                body, self._body = bytes(self._body), bytearray()
                return {"type": "http.request", "body": body, "more_body": not self.whole}
            self._wire.resume_reading()
            self._news.clear()
            await self._news.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """ASGI's.  What nobody can have any more is dropped."""
        if self._wire.stuck and not self._gone:
            await self._wire.drain()
        if self._gone:
            return
        if self.complete:
            raise RuntimeError(f"{message['type']} after the answer was complete")
        if not self.begun:
            self._begin(message["status"], list(message.get("headers", ())))
        else:
            self._go_on(bytes(message.get("body", b"")), more=bool(message.get("more_body", False)))

    def _begin(self, status: int, given: Headers) -> None:
        fields = [(name.lower(), value) for name, value in given if name.lower() != b"transfer-encoding"]
        values = dict(fields)
        bodiless = self.scope["method"] == "HEAD" or status in _BODILESS
        length = values.get(b"content-length")
        chunked = not bodiless and length is None and self.is_current
        closes = b"close" in values.get(b"connection", b"").lower()
        # Where the body has not come, it may yet, or never: nobody could tell it from the next request.
        keep = self.keep_alive and self.whole and not closes and (bodiless or chunked or length is not None)
        if chunked:
            fields.append((b"transfer-encoding", b"chunked"))
        if not keep and not closes:
            fields.append((b"connection", b"close"))
        head = head_of(status, fields)
        self.keep_alive, self._chunked = keep, chunked
        self._left = 0 if bodiless else None if length is None else int(length)
        self._bodiless = bodiless
        self.begun = True
        self._wire.write(head)

    def _go_on(self, body: bytes, *, more: bool) -> None:
        if self._bodiless:
            body = b""
        if self._left is not None:
            if len(body) > self._left or (not more and len(body) < self._left):
                raise RuntimeError("the answer's body is not as long as its content-length says")
            self._left -= len(body)
        if self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        if body:
            self._wire.write(body)
        if not more:
            self.complete = True
            self._news.set()
            self._wire.finished(self)
