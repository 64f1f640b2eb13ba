"""One connection to the upstream: one request at a time, its answer handed over as it comes."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from collections.abc import Callable
from typing import Any, Final, cast

from lastword_shim.sidecar.failures import Broken, UpstreamError, failure_of
from lastword_shim.sidecar.http1 import Head, Http1
from lastword_shim.sidecar.keepalive import watch_peer

ENOUGH: Final = 65536
"""Bytes of an answer that wait for the caller; with so many the upstream is read no further."""


class Connection(asyncio.Protocol):
    """``on_idle_end`` is called where the upstream closes it, or says something, while it serves no request."""

    def __init__(self, on_idle_end: Callable[[Connection], None]) -> None:
        self._on_idle_end = on_idle_end
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport = asyncio.Transport()
        self._http: Http1 | None = None
        self._failure: UpstreamError | None = None
        self._open = False
        self._reading = True
        self._waiter: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._poll = select.poll()
        self.expiry: asyncio.TimerHandle | None = None
        self.idle_since = 0.0

    # What the proxy does.

    def begin(self, http: Http1, head: bytes) -> None:
        """Take up a request and send its head; where the connection has closed by now, its answer is that it broke."""
        self._http, self._failure = http, None
        if not self._stands:
            self.fail(Broken("the connection closed before the request"))
        self.send(head)

    def send(self, data: bytes) -> None:
        """Send part of its body."""
        if data and self._stands:
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait while the upstream does not read."""
        if self._drained is not None:
            await self._drained

    async def head(self) -> Head:
        """The answer's head.  Raises ``UpstreamError``."""
        http = self._current()
        while http.head is None:
            await self._wait()
        return http.head

    async def read(self) -> bytes:
        """More of the answer's body, at least a byte of it; empty at its end.  Raises ``UpstreamError``."""
        http = self._current()
        while not http.parts:
            if http.done:
                return b""
            await self._wait()
        parts, http.parts = http.parts, []
        if not self._reading:
            self._reading = True
            if self._stands:
                self._transport.resume_reading()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @property
    def at_end(self) -> bool:
        """Whether the whole body has been taken."""
        http = self._http
        return http is not None and http.done and not http.parts

    def finish(self) -> bool:
        """The request is over; whether the connection may serve another one."""
        http, self._http = self._http, None
        return self._open and http is not None and http.reusable and not http.parts and self._drained is None

    def fail(self, error: UpstreamError) -> None:
        """Whoever waits for the answer gets this."""
        self._failure = self._failure or error
        self._wake()

    def close(self) -> None:
        """Close it at once, whatever is going on; in the middle of a request so that the upstream hears of it at once."""
        self.fail(Broken("closed by ourselves"))
        if self._http is not None and self._stands:  # the end would else wait behind what it has not read yet
            found: Any = self._transport.get_extra_info("socket")
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def is_usable(self) -> bool:
        """Whether the upstream keeps it open and silent, as far as this machine knows, by now."""
        return self._stands and not self._poll.poll(0)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        self._open = True
        found: Any = transport.get_extra_info("socket")
        watch_peer(found)
        self._poll.register(found.fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer, or of nothing that was asked for."""
        http = self._http
        if http is None:
            self._end_idle()
            return
        try:
            http.feed(data)
        except UpstreamError as error:  # what came before it is still good
            self.fail(error)
            self._transport.abort()
            return
        if self._reading and sum(map(len, http.parts)) > ENOUGH:
            self._reading = False
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """The upstream has said its last; the transport then closes by itself."""
        http = self._http
        if http is None:
            self._end_idle()
            return
        try:
            http.eof()
        except UpstreamError as error:
            self.fail(error)
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self._open = False
        if self._http is None:
            self._end_idle()
        elif not self._http.done:
            self.fail(failure_of(exc, connecting=False) if exc else Broken("the connection closed"))
        self.resume_writing()

    def pause_writing(self) -> None:
        """The upstream does not read."""
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """It reads again."""
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    @property
    def _stands(self) -> bool:
        """Whether its transport takes anything: uvloop's raises once it is closing."""
        return self._open and not self._transport.is_closing()

    def _end_idle(self) -> None:
        self._on_idle_end(self)
        self._transport.abort()

    def _current(self) -> Http1:
        assert self._http is not None, "no request is being served"
        return self._http

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
