"""A caller's connection: HTTP/1.1 in uvicorn's server, in place of uvicorn's own protocol.

It is stricter and hears more: every open request learns that its client has left, and what cannot be read is answered in
the contract's words.  Requests on one connection are served one after another.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from typing import Any, ClassVar, Final, cast

import uvicorn
from uvicorn.server import ServerState

from lastword._classify import ErrorInfo
from lastword_shim.protocol.settling import answer_alone
from lastword_shim.sidecar.clock import BODY, HEAD, IDLE, NOTHING, TIMES, Clock, Closing
from lastword_shim.sidecar.hangup import HangUp
from lastword_shim.sidecar.head import RequestHead
from lastword_shim.sidecar.reader import Reader
from lastword_shim.sidecar.refused import no_handshake, too_slow
from lastword_shim.sidecar.served import EVERY_ANSWER, Served, head_of

_ENOUGH: Final = 65536
"""Bytes of a body that wait to be read; with so many no more are read."""


class ServerProtocol(asyncio.Protocol):
    """``most`` is how many bytes may come that make no head whole and are no body; None: any number."""

    most: ClassVar[int | None] = None

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._config = config
        self._server: Any = server_state
        self._app_state = app_state
        self._transport: asyncio.Transport = asyncio.Transport()
        self._reader = Reader(self, most=self.most, websockets=config.ws_protocol_class is not None)
        self._clock = Clock(self._late)
        self._closing: Closing | None = None
        self._hang_up: HangUp | None = None
        self._paused = False
        self._ahead = 0  # bytes of an answer that have left before anybody knew it
        self._writable = asyncio.Event()
        self._writable.set()
        self._current: Served | None = None
        self._receiving: Served | None = None  # whose body comes
        self._queue: deque[Served | ErrorInfo] = deque()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        self._server.connections.add(self)
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        self._reader.begin(transport, self._app_state)
        found = transport.get_extra_info("socket")
        self._hang_up = HangUp(found.fileno(), self._transport.abort, self._probe)
        self._wait_on()

    def data_received(self, data: bytes) -> None:
        """Bytes of requests."""
        if not self._reader.deaf:
            self._clock.heard()
            self._reader.feed(data)
            self._wait_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left, or we have closed."""
        self._let_go()
        self._queue.clear()
        self._writable.set()
        if self._current is not None:
            self._current.leave()

    def pause_writing(self) -> None:
        """The client does not read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable.set()

    def shutdown(self) -> None:
        """The server stops: what is open may end, nothing else begins."""
        if self._current is None:
            self._transport.close()
        else:
            self._current.keep_alive = False

    # What the reader tells.

    def head(self, head: RequestHead) -> None:
        """A request comes."""
        served = Served(self, head.scope, keep_alive=head.keep_alive, expects=head.expects)
        self._receiving = served
        if self._hang_up is not None:
            self._hang_up.begin()
        if self._current is None:
            self._start(served)
        else:
            self._queue.append(served)
            self._pause_reading()

    def body(self, data: bytes) -> None:
        """Part of its body; no more is read while nobody takes it."""
        if self._receiving is not None:
            self._receiving.feed(data)
            if self._receiving.held > _ENOUGH:
                self._pause_reading()

    def whole(self) -> None:
        """Its body has come."""
        if self._receiving is not None:
            self._receiving.end()
            self._receiving = None

    def handshake(self, head: RequestHead) -> None:
        """A WebSocket is asked for: the library for them reads the head again."""
        if self._current is not None or not head.may_be_a_websocket:
            self.unreadable(no_handshake())
            return
        self._let_go()
        fields = b"".join(b"%b: %b\r\n" % field for field in head.scope["headers"])
        made: Any = self._config.ws_protocol_class
        protocol = made(config=self._config, server_state=self._server, app_state=self._app_state)
        protocol.connection_made(self._transport)
        protocol.data_received(b"GET " + self._reader.target + b" HTTP/1.1\r\n" + fields + b"\r\n")
        self._transport.set_protocol(protocol)

    def unreadable(self, error: ErrorInfo) -> None:
        """Nothing after this is understood; whose body it was is told, or else it is answered in its turn."""
        self._reader.deaf = True
        receiving, self._receiving = self._receiving, None
        if receiving is not None:
            receiving.fail(error)
        elif self._current is None:
            self._say(error)
        else:
            self._queue.append(error)

    # What a request that is served calls.

    @property
    def stuck(self) -> bool:
        """Whether the client does not read."""
        return not self._writable.is_set()

    def write(self, data: bytes) -> None:
        """Send; what has left ahead of it is the begin of it."""
        ahead, self._ahead = self._ahead, 0
        self._transport.write(data[ahead:] if ahead else data)

    async def drain(self) -> None:
        """Wait while the client does not read."""
        await self._writable.wait()

    def resume_reading(self) -> None:
        """There is room for more of the body."""
        if self._paused and not self._queue:
            self._read_on()

    def finished(self, served: Served) -> None:
        """The answer is whole; the next one has its turn."""
        self._current = None
        if self._transport.is_closing():
            return
        if not served.whole:  # the rest of its body is of no use to anybody
            self._receiving, self._reader.deaf = None, True
        if not served.keep_alive:
            self._end()
        elif self._queue:
            following = self._queue.popleft()
            self._say(following) if isinstance(following, ErrorInfo) else self._start(following)
        self.resume_reading()
        self._wait_on()

    def cut(self, *, hard: bool) -> None:
        """The answer goes no further."""
        self._current = None
        if not hard:
            self._end()
            return
        found = self._transport.get_extra_info("socket")
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing it resets it
        self._transport.abort()

    # One after another, each in its time.

    def _start(self, served: Served) -> None:
        self._current = served
        task = asyncio.get_running_loop().create_task(served.run(self._config.loaded_app))
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)

    def _say(self, error: ErrorInfo) -> None:
        status, fields, body = answer_alone(error)
        self.write(head_of(status, [*fields, (b"connection", b"close")]) + body)
        self._end()

    def _wait_on(self) -> None:
        if self._reader.deaf or self._transport.is_closing():
            self._clock.wait_for(NOTHING)
        elif self._receiving is not None:
            self._clock.wait_for(NOTHING if self._paused else BODY)
        elif self._reader.part == HEAD:
            self._clock.wait_for(HEAD)
        else:
            self._clock.wait_for(IDLE if self._current is None else NOTHING)

    def _late(self, what: str) -> None:
        if what == IDLE or self._reader.silent:
            self._transport.close()
        else:
            self.unreadable(too_slow(what, TIMES[what]))

    def _pause_reading(self) -> None:
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()
            if self._hang_up is not None:
                self._hang_up.start()

    def _read_on(self) -> None:
        self._paused = False
        if self._hang_up is not None:
            self._hang_up.stop()
        self._clock.heard()
        self._transport.resume_reading()
        self._wait_on()

    def _probe(self) -> None:
        """In the middle of an upload, begin the answer's first line: its next byte is the same whatever will be said."""
        current = self._current
        if current is not None and current is self._receiving and not current.begun and self._ahead < len(EVERY_ANSWER):
            self._transport.write(EVERY_ANSWER[self._ahead : self._ahead + 1])
            self._ahead += 1

    def _end(self) -> None:
        self._queue.clear()
        linger = self._reader.deaf
        if linger and self._paused:
            self._read_on()
        self._closing = Closing(self._transport, linger=linger)
        self._reader.deaf = True

    def _let_go(self) -> None:
        self._server.connections.discard(self)
        self._clock.wait_for(NOTHING)
        if self._hang_up is not None:
            self._hang_up.stop()
        if self._closing is not None:
            self._closing.stop()


def server_protocol(max_header_bytes: int | None) -> type[ServerProtocol]:
    """The protocol for a server that takes heads of so many bytes; twice that has room for what is between fields."""
    most = None if max_header_bytes is None else 2 * max_header_bytes + 8192
    return type("ServerProtocol", (ServerProtocol,), {"most": most})
