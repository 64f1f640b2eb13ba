"""The shim on a real socket: a scripted application behind it, a bare client before it, and the contract's schemas."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from tests.shim.apps import CHAT, App

from lastword.conformance._schemas import violations
from lastword_shim import Settings, Shim
from lastword_shim.account.recorder import Recorder


def conforms(value: object, schema: str) -> None:
    """Hold ``value`` against ``contract/schemas/{schema}.json``."""
    assert violations(schema, value) == []


@dataclass
class Answer:
    """A parsed HTTP answer; ``complete`` is False where the connection closed in the middle of it."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    complete: bool

    def header(self, name: str) -> str | None:
        values = [value for key, value in self.headers if key == name]
        assert len(values) < 2, f"{name} came twice: {values}"
        return values[0] if values else None

    @property
    def error(self) -> dict[str, Any]:
        """The error of an HTTP answer, checked against the contract and against its own headers."""
        parsed = json.loads(self.body)
        conforms(parsed, "error")
        error: dict[str, Any] = parsed["error"]
        assert self.header("x-request-id") == error["request_id"]
        assert self.header("x-should-retry") in {"true", "false"}
        if error["retryable"]:
            assert int(self.header("retry-after") or 0) >= 1
            assert int(self.header("retry-after-ms") or 0) == error["retry_after_ms"]
        else:
            assert self.header("x-should-retry") == "false"
            assert self.header("retry-after") is None
        return error

    @property
    def events(self) -> list[str]:
        return [event.removeprefix("data: ") for event in self.body.decode().split("\n\n") if event.startswith("data:")]

    @property
    def event_error(self) -> dict[str, Any]:
        """The error event that ends a stream: the only one, the last one, in the contract's shape."""
        errors = [json.loads(event) for event in self.events if event.startswith('{"error"')]
        assert len(errors) == 1, self.events[-3:]
        assert json.loads(self.events[-1]) == errors[0]
        assert "[DONE]" not in self.events
        conforms({"data": errors[0]}, "stream-error-event")
        error: dict[str, Any] = errors[0]["error"]
        return error


@dataclass
class Server:
    """The shim's server: its port, the records that it wrote, and what the application saw."""

    port: int
    shim: Shim
    uvicorn: uvicorn.Server
    records: list[dict[str, Any]] = field(default_factory=list)

    async def ask(
        self,
        body: Mapping[str, Any] | bytes | None = None,
        *,
        path: str = CHAT,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        timeout: float = 10,
    ) -> Answer:
        async with asyncio.timeout(timeout):
            async with self.connect(body, path=path, method=method, headers=headers) as (reader, _):
                return await read_answer(reader)

    @contextlib.asynccontextmanager
    async def connect(
        self,
        body: Mapping[str, Any] | bytes | None = None,
        *,
        path: str = CHAT,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection with the request already sent; closed on leaving."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(
                request(body if body is not None else {"model": "m", "stream": True}, path, method, headers or {})
            )
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def one_record(self, count: int = 1) -> dict[str, Any]:
        """The last of exactly ``count`` records, once they are there."""
        async with asyncio.timeout(5):
            while len(self.records) < count:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        assert len(self.records) == count, self.records
        return self.records[-1]


def request(body: Mapping[str, Any] | bytes, path: str, method: str, headers: Mapping[str, str]) -> bytes:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"host": "test", "content-type": "application/json", "content-length": str(len(sent)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return f"{method} {path} HTTP/1.1\r\n{head}connection: close\r\n\r\n".encode() + (sent if method == "POST" else b"")


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in head[1:-2])]
    body, complete = bytearray(), True
    try:
        if ("transfer-encoding", "chunked") in headers:
            while size := int(await reader.readuntil(b"\r\n"), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readuntil(b"\r\n")
        else:
            body += await reader.readexactly(int(dict(headers).get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        complete = False
    return Answer(int(head[0].split()[1]), headers, bytes(body), complete)


class Quiet(uvicorn.Server):
    """Uvicorn that leaves the test run's signal handlers alone, and is quick to stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        while not self.should_exit:
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def serving(
    app: App, *, engine: Any = None, wrap: Callable[[Any], Any] = lambda shim: shim, **settings: Any
) -> AsyncIterator[Server]:
    """The application behind the shim behind uvicorn.  Fails if a task of it is left over at the end."""
    before = asyncio.all_tasks()
    shim = Shim(app, settings=Settings(**settings), engine=engine)
    config = uvicorn.Config(
        wrap(shim), port=0, http="h11", lifespan="off", log_level="error", access_log=False, timeout_graceful_shutdown=2
    )  # h11: what httptools does otherwise is played by hand
    server = Quiet(config)
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    found = Server(server.servers[0].sockets[0].getsockname()[1], shim, server)
    with recording(shim, found.records):
        try:
            yield found
        finally:
            server.should_exit = True
            await running
    async with asyncio.timeout(3):
        while left := asyncio.all_tasks() - before:
            await asyncio.wait(left, timeout=0.05)


@contextlib.contextmanager
def recording(shim: Shim, records: list[dict[str, Any]]) -> Iterator[None]:
    """Collect the shim's records, each checked against the contract's schema."""
    assert shim._core is not None
    original: Recorder = shim._core.recorder

    class Collecting(Recorder):
        def write(self, *arguments: Any) -> dict[str, Any]:
            record = original.write(*arguments)
            records.append(record)
            return record

    shim._core.recorder = Collecting(None, shim._core.metrics)
    try:
        yield
    finally:
        shim._core.recorder = original
        for record in records:
            conforms(record, "record")
