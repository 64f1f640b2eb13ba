"""The caller's deadline: what cannot begin in time is refused at once, and what is not over in time ends in each phase."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.shim.apps import DONE, GOOD, Receive, Scope, Send, Slow, Stopwatch, chunk, streaming
from tests.shim.engines import Counting
from tests.shim.test_admission_bounds import asked, until, waiting
from tests.shim.wire import Server, serving

from lastword_shim.exchange.telling import SEND_PATIENCE

pytestmark = pytest.mark.anyio
WHOLE: dict[str, Any] = {"model": "m"}
STREAM: dict[str, Any] = {"model": "m", "stream": True}


@pytest.mark.parametrize("body", [WHOLE, STREAM])
async def test_a_deadline_that_passes_in_the_line_frees_the_place_in_it(body: dict[str, Any]) -> None:
    """504 in time, never handed on; the next one takes its place in the line, and nobody else is disturbed."""
    app = Slow()
    async with serving(app, max_inflight=1, max_queued=1) as server:
        first = await asked(server, app, 1)
        began = time.monotonic()
        late = asyncio.create_task(server.ask(body, headers={"request-timeout-ms": "300"}))
        await until(lambda: waiting(server) == 1, "one in line")
        assert (await server.ask(body)).error["code"] == "queue_overloaded"
        answer = await late
        assert (answer.status, answer.error["code"]) == (504, "deadline_exceeded")
        assert 0.3 <= time.monotonic() - began < 2
        assert answer.error["details"] == {"limit_seconds": 0.3}
        assert waiting(server) == 0
        next_one = asyncio.create_task(server.ask(body))
        await until(lambda: waiting(server) == 1, "the next in line")
        app.go.set()
        assert {(await first).status, (await next_one).status} == {200}
        assert app.most == 1
        (record,) = [record for record in server.records if record["error_code"] == "deadline_exceeded"]
    assert (record["state"], record["timeout_kind"], record["deadline_ms"]) == ("rejected", "total", 300)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("tokens", [0, 3])
async def test_a_deadline_that_passes_at_the_engine_stops_it_and_frees_the_place(stream: bool, tokens: int) -> None:
    """As an event where the stream has begun, as a status else; the next in line gets in at once."""
    app = Stopwatch(stream=stream, tokens=tokens)
    async with serving(app, engine=Counting(), max_inflight=1, max_queued=1, hold=0.05) as server:
        late = asyncio.create_task(server.ask({**WHOLE, "stream": stream}, headers={"request-timeout-ms": "300"}))
        await app.begun.wait()
        app.begun.clear()
        second = asyncio.create_task(server.ask({**WHOLE, "stream": stream}, headers={"request-timeout-ms": "900"}))
        await until(lambda: waiting(server) == 1, "one in line")
        answer = await late
        error = answer.event_error if stream else answer.error
        assert (answer.status, error["code"]) == (200 if stream else 504, "deadline_exceeded")
        async with asyncio.timeout(2):
            await app.ended.wait()
            await app.begun.wait()
        await second
        record = server.records[0]
        assert (record["state"], record["completion_tokens"]) == ("failed", tokens or None)


async def test_the_place_is_free_though_the_client_does_not_read() -> None:
    """Its last word waits for it; the next request does not."""
    big = chunk("x" * 100_000)
    async with serving(streaming(*[big] * 100, 30), max_inflight=1, max_queued=1) as server:
        async with server.connect(STREAM, headers={"request-timeout-ms": "300"}):
            assert server.shim._core is not None
            await until(lambda: server.shim._core.places.inside == 1, "one inside")  # type: ignore[union-attr]
            began = time.monotonic()
            async with server.connect(STREAM) as (reader, _):
                await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 8)
                assert time.monotonic() - began < SEND_PATIENCE - 1


async def measured(server: Server, turns: int = 6) -> list[asyncio.Task[Any]]:
    """Three clients that take turns at one place, until their pace has been measured; they go on for a while."""

    async def client() -> None:
        for _ in range(turns):
            assert (await server.ask()).status == 200

    clients = [asyncio.create_task(client()) for _ in range(3)]
    await until(lambda: len(server.records) >= 6, "six answers")
    await until(lambda: waiting(server) == 2, "two in line")
    return clients


async def test_what_cannot_begin_in_time_is_refused_at_once() -> None:
    """By the measured pace it would be 300 ms: 200 are too few, 3000 are enough; the body is not waited for."""
    async with serving(streaming(0.1, GOOD), max_inflight=1, max_queued=9) as server:
        clients = await measured(server)
        began = time.monotonic()
        answer = await server.ask(WHOLE, headers={"request-timeout-ms": "200"})
        assert time.monotonic() - began < 1
        assert (answer.status, answer.error["code"]) == (503, "queue_overloaded")
        details = answer.error["details"]
        assert 100 < details["deadline_ms"] <= 200 < details["estimated_wait_ms"] < 500
        assert str(details["estimated_wait_ms"]) in answer.error["message"]
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 9999\r\nrequest-timeout-ms: 150\r\n\r\n"
        writer.write(head)
        assert (await asyncio.wait_for(reader.readline(), 2)).split()[1] == b"503"
        writer.close()
        assert (await server.ask(STREAM, headers={"request-timeout-ms": "3000"})).status == 200
        await asyncio.gather(*clients)


async def test_stock_clients_that_will_have_left_by_then_are_refused_too() -> None:
    """They say after how many seconds of silence they leave; a stream is not silent, and nonsense is no time."""
    async with serving(streaming(0.1, chunk("a"), GOOD), max_inflight=1, max_queued=9) as server:
        clients = await measured(server)
        for name in ("x-stainless-read-timeout", "x-stainless-timeout"):
            refused = await server.ask(WHOLE, headers={name: "0.15"})
            assert refused.error["details"]["deadline_ms"] == 150
        for headers in ({"x-stainless-read-timeout": "600"}, {"x-stainless-read-timeout": "soon"}):
            assert (await server.ask(STREAM, headers=headers)).status == 200
        assert waiting(server) == 2
        assert (await server.ask(STREAM, headers={"x-stainless-read-timeout": "0.15"})).status == 200
        await asyncio.gather(*clients)


async def test_nothing_is_refused_on_a_guess() -> None:
    """While nothing has been measured a request with a short deadline waits, and may be lucky."""
    app = Slow()
    async with serving(app, max_inflight=1, max_queued=9) as server:
        first = await asked(server, app, 1)
        second = asyncio.create_task(server.ask(WHOLE, headers={"request-timeout-ms": "800"}))
        await until(lambda: waiting(server) == 1, "one in line")
        app.go.set()
        assert {(await first).status, (await second).status} == {200}


async def test_a_client_that_leaves_the_line_gives_its_place_in_it_up_at_once() -> None:
    """And who stands behind it moves up."""
    app = Slow()

    async def reluctant(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except ConnectionError:  # no body came
            await asyncio.sleep(0.8)

    async with serving(reluctant, max_inflight=1, max_queued=2) as server:
        first = await asked(server, app, 1)
        async with server.connect(STREAM):
            await until(lambda: waiting(server) == 1, "one in line")
            behind = asyncio.create_task(server.ask(WHOLE))
            await until(lambda: waiting(server) == 2, "two in line")
        left = time.monotonic()
        await until(lambda: waiting(server) == 1, "one in line again")
        assert time.monotonic() - left < 0.5
        app.go.set()
        assert {(await first).status, (await behind).status} == {200}
        assert app.most == 1
        await until(lambda: len(server.records) == 3, "three records")
        assert [record["disconnect_phase"] for record in server.records if record["client_disconnected"]] == ["queued"]


@pytest.mark.parametrize("header", ["1", "50"])
async def test_a_deadline_that_is_nearly_over_is_no_overload(header: str) -> None:
    """With a place free it is tried, and told for what it is."""
    async with serving(streaming(3, chunk("a", finish="stop") + DONE), max_inflight=1) as server:
        answer = await server.ask(STREAM, headers={"request-timeout-ms": header})
        assert (answer.status, answer.error["code"]) == (504, "deadline_exceeded")
