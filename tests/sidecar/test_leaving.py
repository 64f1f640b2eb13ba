"""When the caller goes, the upstream's connection closes at once, whatever was going on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator

import pytest
from tests.shim.apps import ROLE, chunk
from tests.shim.wire import Server
from tests.sidecar.wire import EVENTS_HEAD, Call, Upstream, chunked, sidecar, upstream

pytestmark = pytest.mark.anyio
SOON = 0.3
"""Seconds within which the upstream must see it."""


@contextlib.asynccontextmanager
async def behind(sent: bytes, *, with_body: bool = True) -> AsyncIterator[tuple[Upstream, Server, asyncio.Event]]:
    """An upstream that sends so much and then says nothing; the event is set once it has the request."""
    reached = asyncio.Event()

    async def handler(call: Call) -> None:
        await call.send(sent)
        reached.set()
        await call.gone()

    async with upstream(handler, with_body=with_body) as engine, sidecar(engine.url, hold=0.01) as server:
        yield engine, server, reached


async def seen_by(engine: Upstream, left_at: float) -> float:
    async with asyncio.timeout(3):
        while engine.calls[0].closed_at is None:
            await asyncio.sleep(0.005)
    assert engine.calls[0].closed_at is not None
    return engine.calls[0].closed_at - left_at


@pytest.mark.parametrize(
    ("sent", "body", "phase", "tokens"),
    [
        (b"", {"stream": False}, "queued", None),
        (b"", {"stream": True}, "queued", None),
        (EVENTS_HEAD, {"stream": True}, "queued", 0),
        (EVENTS_HEAD + chunked(ROLE, chunk("Hello")), {"stream": True}, "generating", None),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{", {"stream": False}, "queued", None),
    ],
    ids=["answer", "before the head", "before a token", "in the stream", "in the answer"],
)  # fmt: skip
async def test_in_each_phase(sent: bytes, body: dict[str, object], phase: str, tokens: int | None) -> None:
    """Stream and whole answer, before the head and after it; the record says so, and null is what nobody knows."""
    async with behind(sent) as (engine, server, reached):
        async with server.connect({"model": "m", **body}) as (reader, _):
            await reached.wait()
            if b"Hello" in sent:
                await reader.readuntil(b"Hello")
            else:
                await asyncio.sleep(0.05)
            left_at = time.monotonic()
        assert await seen_by(engine, left_at) < SOON
        record = await server.one_record()
    assert (record["state"], record["error_code"], record["http_status"]) == ("cancelled", "client_disconnected", 499)
    assert (record["disconnect_phase"], record["completion_tokens"]) == (phase, tokens)
    assert (record["tokens_at_disconnect"], record["tokens_after_disconnect"]) == (None, None)
    assert record["wasted"] is (phase == "generating")


async def test_during_an_upload() -> None:
    """Half a file is no file: the upstream's connection closes before it is whole."""
    async with behind(b"", with_body=False) as (engine, server, reached):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/files HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n" + b"x" * 10)
        await reached.wait()
        left_at = time.monotonic()
        writer.close()
        assert await seen_by(engine, left_at) < SOON


async def test_on_a_route_that_the_middleware_leaves_alone() -> None:
    async with behind(b"") as (engine, server, reached):
        async with server.connect(b"", path="/metrics", method="GET"):
            await reached.wait()
            left_at = time.monotonic()
        assert await seen_by(engine, left_at) < SOON


async def test_while_the_connection_is_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing reaches the upstream, and nothing is left open."""
    opening, go_on = asyncio.Event(), asyncio.Event()

    async with behind(b"") as (engine, server, _):
        pool = server.uvicorn._pool  # type: ignore[attr-defined]
        really = pool.open

        async def slowly() -> object:
            opening.set()
            await go_on.wait()
            return await really()

        monkeypatch.setattr(pool, "open", slowly)
        async with server.connect({"model": "m"}):
            await opening.wait()
        record = await server.one_record()
        go_on.set()
    assert record["error_code"] == "client_disconnected"
    assert engine.calls == []


async def test_whenever_they_leave_no_connection_is_left() -> None:
    """A hundred callers that go at any moment, while the connection is being made too."""
    async with behind(EVENTS_HEAD) as (engine, server, _):

        async def come_and_go(turns: int) -> None:
            async with server.connect({"model": "m", "stream": True}):
                for _ in range(turns):
                    await asyncio.sleep(0)

        await asyncio.gather(*(come_and_go(number % 50) for number in range(100)))
        async with asyncio.timeout(5):
            while engine.open or len(server.shim._core.register):  # type: ignore[union-attr]
                await asyncio.sleep(0.01)
        assert len(server.uvicorn._pool._idle) == 0  # type: ignore[attr-defined]


async def test_one_that_goes_takes_no_other_with_it() -> None:
    """And its connection is not given to anybody else."""
    reached = asyncio.Event()

    async def handler(call: Call) -> None:
        await call.send(EVENTS_HEAD + chunked(ROLE, chunk("Hello")))
        if len(engine.calls) == 2:
            reached.set()
        if json.loads(call.body)["model"] == "goes":
            await call.gone()
            return
        await reached.wait()
        await asyncio.sleep(0.1)
        await call.send(chunked(chunk(finish="stop"), b"data: [DONE]\n\n") + b"0\r\n\r\n")

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        staying = asyncio.create_task(server.ask({"model": "stays", "stream": True}))
        async with server.connect({"model": "goes", "stream": True}) as (reader, _):
            await reader.readuntil(b"Hello")
        assert (await staying).events[-1] == "[DONE]"
        again = await server.ask({"model": "stays", "stream": True})
        assert again.events[-1] == "[DONE]"
    assert {call.connection for call in engine.calls if json.loads(call.body)["model"] == "goes"} != {
        engine.calls[-1].connection
    }
