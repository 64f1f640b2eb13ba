"""Plays scripted answers on one connection and notes what the client did: raw HTTP/1.1, on purpose without a framework.

No HTTP server library can cut a chunked body, reset a connection or fall silent on request, and these are the cases
that matter. Everything here runs on the event loop of the scripted server's own thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, cast

from lastword._scripted._request import Received
from lastword._scripted._script import AwaitDisconnect, Delay, End, Exchange, Send, Step, segments

if TYPE_CHECKING:
    from collections.abc import Sequence

_RST: Final = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: close() then sends RST and not FIN
_LOGGED: Final = 2000  # bytes of one step that the log keeps
_BEFORE_RST: Final = 0.02  # s; some kernels drop what was received but not yet read when an RST arrives


class Script(Protocol):
    """What a connection asks of its server."""

    segmentation: str
    closing: asyncio.Event
    log: list[Logged] | None

    def take(self, request: Received) -> Exchange:
        """Give the answer to this request and log the request."""
        ...

    def opened(self, connection: Connection) -> int:
        """Count a connection."""
        ...

    def changed(self, connection: Connection | None = None) -> None:
        """Wake whoever waits for a change; a connection is given when it has closed."""
        ...


@dataclass(frozen=True, slots=True)
class Logged:
    """One thing that happened on a connection. ``data`` is the beginning of what was received or sent."""

    at: float  # time.monotonic()
    connection: int
    what: Literal["opened", "request", "sent", "end", "client"]
    text: str = ""  # for a request its first line, for an end how, for the client how it left
    data: bytes = b""
    size: int = 0  # bytes, all of them


class _ClientLeftError(Exception):
    pass


class Connection(asyncio.Protocol):
    """One accepted connection: reads requests, plays one exchange for each, stays open for the next."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._buffer = bytearray()
        self._more = asyncio.Event()
        self._gone = asyncio.Event()
        self._left_at = 0.0
        self._held: list[bytes] | None = [] if script.segmentation == "whole" else None
        self._current: Received | None = None

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to serve."""
        self.transport = cast("asyncio.Transport", transport)
        self._socket = transport.get_extra_info("socket")
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = self._script.opened(self)
        self._note("opened")
        self.task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        """Keep what the client sent."""
        self._buffer += data
        self._more.set()

    def eof_received(self) -> bool:
        """Note the client's FIN."""
        self._left("fin")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the client's RST, or that the connection is over."""
        self._left("reset" if exc is not None else "closed")
        self._script.changed(self)

    def _left(self, how: str) -> None:
        if self._gone.is_set():
            return
        self._left_at = time.monotonic()
        if self._current is not None and how != "closed":
            self._current.disconnected_at, self._current.disconnected_by = self._left_at, how
        self._gone.set()
        self._more.set()
        self._note("client", how)
        self._script.changed()

    def _note(
        self, what: Literal["opened", "request", "sent", "end", "client"], text: str = "", data: bytes = b""
    ) -> None:
        if self._script.log is not None:
            entry = Logged(time.monotonic(), self.number, what, text, data[:_LOGGED], len(data))
            self._script.log.append(entry)

    # -- serving

    async def _serve(self) -> None:
        with contextlib.suppress(_ClientLeftError):
            while not self.transport.is_closing():
                request = await self._read_request()
                exchange = self._script.take(request)
                self._current = request
                try:
                    await self._play(exchange, request)
                finally:
                    self._current = None
                    request.ended_at = time.monotonic()
                    self._script.changed()
        self.transport.close()

    async def _play(self, exchange: Exchange, request: Received) -> None:
        for step in exchange.before:
            await self._wait(step, request)
        head = exchange.head()
        self._write(head)
        if head:
            self._note("sent", "head", head)
        may_leave = False
        for position, step in enumerate(exchange.steps):
            if isinstance(step, End):
                await self._end(step, exchange, request)
            elif not isinstance(step, Send):
                await self._wait(step, request)
            elif not self._gone.is_set():
                await self._send(step, chunked=exchange.chunked)
                may_leave = may_leave or step.final
            elif not (may_leave or _expects_leaving(rest := exchange.steps[position:])):
                request.unsent = sum(isinstance(each, Send) for each in rest)
                return
        request.answered = True

    async def _send(self, step: Send, *, chunked: bool) -> None:
        self._note("sent", "body", step.payload)
        for piece in segments(step.payload, self._script.segmentation):
            self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            await asyncio.sleep(0)  # one write a segment, and a chance to see the client leave
            if self._gone.is_set():
                return

    async def _wait(self, step: Step, request: Received) -> None:
        self._flush()
        if isinstance(step, Delay):
            await self._first_of(self._gone, self._script.closing, timeout=step.seconds)
        elif isinstance(step, AwaitDisconnect):
            await self._first_of(self._gone, timeout=step.seconds)
            if not self._gone.is_set():
                request.stayed = step.seconds

    async def _end(self, end: End, exchange: Exchange, request: Received) -> None:
        if end.how == "complete" and exchange.chunked:
            self._write(b"0\r\n\r\n")
        self._flush()
        self._note("end", end.how)
        if end.how == "complete":
            if exchange.closes or request.headers.get("connection", "").lower() == "close":
                self.transport.close()
        elif end.how == "truncate":
            self.transport.close()
        elif end.how == "stall":
            await self._first_of(self._gone, self._script.closing, timeout=None)
        else:
            await self._reset()

    async def _reset(self) -> None:
        # A transport announces an empty buffer to paused writers only.
        while self.transport.get_write_buffer_size() and not self._gone.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await self._first_of(self._gone, timeout=_BEFORE_RST)
        with contextlib.suppress(OSError):  # the client may have been first
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)
        self.transport.abort()

    @property
    def busy(self) -> bool:
        """Whether an answer is being played."""
        return self._current is not None

    async def _first_of(self, *events: asyncio.Event, timeout: float | None) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def _write(self, data: bytes) -> None:
        if self._held is not None:
            self._held.append(data)
        elif data and not self._gone.is_set():
            self.transport.write(data)

    def _flush(self) -> None:
        if self._held is None:
            return
        data, self._held = b"".join(self._held), []
        if data and not self._gone.is_set():
            self.transport.write(data)

    # -- reading a request (RFC 9112, as much of it as clients use)

    async def _read_request(self) -> Received:
        head = (await self._until(b"\r\n\r\n")).decode("latin-1")
        at = time.monotonic()
        line, *lines = head.split("\r\n")
        method, _, rest = line.partition(" ")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines if each)}
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = await self._chunks()
        else:
            body = await self._exactly(int(headers.get("content-length", "0")))
        self._note("request", line, body)
        return Received(method, rest.rpartition(" ")[0], headers, body, self.number, at)

    async def _chunks(self) -> bytes:
        body = bytearray()
        while size := int((await self._until(b"\r\n")).split(b";")[0], 16):
            body += await self._exactly(size)
            await self._exactly(2)
        await self._until(b"\r\n")
        return bytes(body)

    async def _until(self, mark: bytes) -> bytes:
        while (end := self._buffer.find(mark)) < 0:
            await self._need_more()
        return (await self._exactly(end + len(mark)))[: -len(mark)]

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await self._need_more()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    async def _need_more(self) -> None:
        if self._gone.is_set():
            raise _ClientLeftError
        self._more.clear()
        await self._more.wait()


def _expects_leaving(steps: Sequence[Step]) -> bool:
    return any(isinstance(each, AwaitDisconnect) or each == End("stall") for each in steps)
