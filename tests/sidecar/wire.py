"""The sidecar on a real socket in front of a scripted upstream on another, in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.shim.apps import DONE, ROLE, chunk
from tests.shim.wire import Quiet, Server, recording

from lastword_shim import Settings
from lastword_shim.sidecar.serve import Service, Sidecar

EVENTS_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
WHOLE = (
    b'{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}'
)


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part)


WORDS = chunked(ROLE, chunk("Hello"), chunk(finish="stop"), DONE)


def plain(body: bytes = b"{}", *, status: int = 200, kind: str = "application/json", extra: str = "") -> bytes:
    head = f"HTTP/1.1 {status} Some\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
    return head.encode("latin-1") + body


@dataclass
class Call:
    """One request as the upstream got it."""

    head: bytes
    body: bytes
    connection: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    closed_at: float | None = None

    @property
    def fields(self) -> list[tuple[str, str]]:
        lines = self.head.decode("latin-1").split("\r\n")[1:-2]
        return [(name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)]

    def field(self, name: str) -> str | None:
        values = [value for key, value in self.fields if key == name]
        assert len(values) < 2, values
        return values[0] if values else None

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self, within: float = 5) -> None:
        """Wait until the sidecar has closed the connection."""
        async with asyncio.timeout(within):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(65536):
                    pass
        self.closed_at = time.monotonic()

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        raw: socket.socket = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Handler = Callable[[Call], Awaitable[object]]


@dataclass
class Upstream:
    """What came to it; ``/health`` is answered by itself and not counted."""

    port: int
    calls: list[Call] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def call(self) -> Call:
        (call,) = self.calls
        return call


@contextlib.asynccontextmanager
async def upstream(handler: Handler, *, with_body: bool = True, health: bool = True) -> AsyncIterator[Upstream]:
    """A server that gives each request to ``handler``, and the next on the same connection unless that closed it.

    Health checks it answers by itself if ``health``.
    """
    found = Upstream(0)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        found.open += 1
        number = -1
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                if health and b"/health HTTP" in head.split(b"\r\n")[0]:
                    writer.write(plain(extra="connection: close\r\n"))
                    return
                if number < 0:
                    number, found.connections = found.connections, found.connections + 1
                call = Call(head, b"", number, reader, writer)
                if with_body:
                    call.body = await _body(call)
                found.calls.append(call)
                await handler(call)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            found.open -= 1
            writer.close()
            found.ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _body(call: Call) -> bytes:
    length = re.search(rb"\r\ncontent-length: (\d+)\r\n", call.head)
    if length is not None:
        return await call.reader.readexactly(int(length[1]))
    body = b""
    if b"\r\ntransfer-encoding: chunked\r\n" in call.head:
        while size := int(await call.reader.readuntil(b"\r\n"), 16):
            body += (await call.reader.readexactly(size + 2))[:-2]
        await call.reader.readuntil(b"\r\n")
    return body


class InProcess(Quiet, Sidecar):
    """The sidecar's own server, in the test's loop; it stops as uvicorn does, without its pauses."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._shim.drain(self._service.shutdown_timeout)
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        async with asyncio.timeout(3):
            while self.server_state.connections or self.server_state.tasks:
                await asyncio.sleep(0.002)
        await self.lifespan.shutdown()


@contextlib.asynccontextmanager
async def sidecar(url: str, *, service: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[Server]:
    """The sidecar in front of ``url``.  Fails if a task of it is left over at the end."""
    before = asyncio.all_tasks()
    wanted = Service(upstream=url, **{"port": 0, "shutdown_timeout": 0.0, **(service or {})})
    listener = wanted.listen()
    server = InProcess(wanted, wanted.pool(), Settings(**settings))
    found = Server(listener.getsockname()[1], server._shim, server)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.005)
    with recording(server._shim, found.records):
        try:
            yield found
        finally:
            server.should_exit = True
            await running
    async with asyncio.timeout(3):
        while left := {task for task in asyncio.all_tasks() - before if "serve" not in repr(task)}:
            await asyncio.wait(left, timeout=0.05)


async def exchange(port: int, sent: bytes, *, within: float = 5) -> bytes:
    """What comes back on one connection until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        async with asyncio.timeout(within):
            return await reader.read()
    finally:
        writer.close()
