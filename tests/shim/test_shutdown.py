"""Stopping: new requests are refused, open ones may finish, then each gets its terminal, and nothing is left."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from tests.shim.apps import CHAT, DONE, WHOLE, Receive, Scope, Send, answering, chunk, streaming, stubborn
from tests.shim.engines import Counting
from tests.shim.wire import Answer, Server, serving

pytestmark = pytest.mark.anyio
GOOD = chunk("a", finish="stop") + DONE


async def opened(server: Server, body: dict[str, Any]) -> asyncio.Task[Answer]:
    task = asyncio.create_task(server.ask(body))
    await asyncio.sleep(0.1)
    return task


async def test_at_no_time_to_finish_every_open_request_gets_its_terminal_at_once() -> None:
    """A stream its event, a held stream and a whole answer their status; new ones a refusal, probes too."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        kind = dict(scope["headers"])[b"x-kind"]
        await {b"late": streaming(chunk("a"), 30), b"early": streaming(30), b"whole": answering(WHOLE, after=30)}[kind](
            scope, receive, send
        )

    async with serving(app, hold=60) as server:
        tasks = [
            asyncio.create_task(server.ask({"stream": kind != "whole"}, headers={"x-kind": kind}))
            for kind in ("late", "early", "whole")
        ]
        await asyncio.sleep(0.2)
        began = time.monotonic()
        await server.shim.drain(0)
        assert time.monotonic() - began < 1
        late, early, whole = [await task for task in tasks]
        refused = await server.ask({}, headers={"x-kind": "whole"})
        health = await server.ask(path="/health", method="GET")
    assert late.event_error["code"] == "server_shutting_down"
    for answer in (early, whole, refused):
        assert (answer.status, answer.error["code"]) == (503, "server_shutting_down")
        assert answer.header("x-should-retry") == "true"
    assert health.status == 503
    assert health.error["request_id"]
    assert [(record["state"], record["error_code"]) for record in server.records] == [
        ("failed", "server_shutting_down")
    ] * 3 + [("rejected", "server_shutting_down")]


async def test_open_requests_may_finish_in_the_time_that_there_is() -> None:
    """Those that need longer are ended when it is over; draining ends as soon as all have finished."""
    async with serving(streaming(chunk("a"), 0.5, GOOD)) as server:
        task = await opened(server, {"stream": True})
        began = time.monotonic()
        await server.shim.drain(10)
        assert time.monotonic() - began < 2
        assert "[DONE]" in (await task).events
    async with serving(streaming(chunk("a"), 30)) as server:
        task = await opened(server, {"stream": True})
        await server.shim.drain(0.3)
        assert (await task).event_error["code"] == "server_shutting_down"


async def test_what_stopping_looks_like_from_inside_is_told_as_stopping() -> None:
    """While the server drains, an abort or a dead engine is the shutdown, and may be tried elsewhere."""
    dead = b'data: {"error":{"message":"EngineCore encountered an issue.","type":"InternalServerError","code":500}}\n\n'
    for ending in ([chunk(finish="abort"), DONE], [dead, DONE], [RuntimeError("gone")], []):
        async with serving(streaming(chunk("a"), 0.3, *ending)) as server:
            task = await opened(server, {"stream": True})
            await server.shim.drain(5)
            assert (await task).event_error["code"] == "server_shutting_down", ending


async def test_waiting_requests_are_ended_too() -> None:
    """Those that had no place yet never reached the engine."""
    async with serving(streaming(chunk("a"), 30), max_inflight=1, max_queued=1) as server:
        first, second = await opened(server, {"stream": True}), await opened(server, {"stream": True})
        await server.shim.drain(0)
        assert (await first).event_error["code"] == "server_shutting_down"
        assert (await second).error["code"] == "server_shutting_down"
        assert {record["state"] for record in server.records} == {"failed", "rejected"}


async def test_a_client_that_does_not_read_does_not_keep_the_server() -> None:
    """Nor does an application that does not stop; both leave their record."""
    async with (
        serving(streaming(*[chunk("x" * 100_000)] * 200, GOOD)) as server,
        server.connect({"stream": True}) as (reader, _),
    ):
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.2)
        began = time.monotonic()
        await server.shim.drain(0)
        assert time.monotonic() - began < 3
        assert (await server.one_record())["error_code"] == "server_shutting_down"
    done = asyncio.Event()
    async with serving(stubborn(done.set)) as server:
        task = await opened(server, {})
        await server.shim.drain(0)
        assert (await task).error["code"] == "server_shutting_down"
        await done.wait()


async def test_a_request_whose_body_never_comes_does_not_keep_the_server() -> None:
    """It is answered, and its connection closed."""
    async with serving(answering(WHOLE)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{{".encode())
        await asyncio.sleep(0.1)
        await server.shim.drain(0)
        assert (await reader.readline()).split()[1] == b"503"
        writer.close()


async def test_a_second_drain_hurts_nobody() -> None:
    """vLLM calls its shutdown twice."""
    async with serving(streaming(chunk("a"), 30)) as server:
        task = await opened(server, {"stream": True})
        await asyncio.gather(server.shim.drain(0), server.shim.drain(0.2))
        await server.shim.drain(0)
        assert (await task).event_error["code"] == "server_shutting_down"
        assert len(server.records) == 1


async def test_a_server_that_cancels_what_runs_still_gets_its_terminal_and_a_record() -> None:
    """Uvicorn does that to those who are left after its own limit."""
    async with (
        serving(streaming(chunk("a"), 30), engine=Counting()) as server,
        server.connect({"stream": True}) as (reader, _),
    ):
        await reader.readuntil(b"\n\n")
        for exchange in list(server.shim._core.register._open):  # type: ignore[union-attr]
            exchange.give_up()
        assert (await server.one_record())["error_code"] == "server_shutting_down"
        rest = await reader.read()
    assert b"[DONE]" not in rest
    assert b'"server_shutting_down"' in rest
    assert rest.endswith(b"0\r\n\r\n")
    json.dumps(server.records)
