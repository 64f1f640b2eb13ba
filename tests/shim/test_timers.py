"""The server's own limits, the caller's deadline, and clients that leave."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.shim.apps import (
    DONE,
    GOOD,
    ROLE,
    WHOLE,
    Receive,
    Scope,
    Send,
    Stopwatch,
    answering,
    chunk,
    streaming,
    stubborn,
)
from tests.shim.engines import Counting
from tests.shim.wire import serving

from lastword_shim.engine import current

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("steps", "settings", "status", "code", "kind"),
    [
        ([5, GOOD], {"first_token_timeout": 0.2}, 504, "first_token_timeout", "first_token"),
        ([5, GOOD], {"queue_timeout": 0.2}, 503, "queue_timeout", "queue"),
        ([5, GOOD], {"total_timeout": 0.2}, 504, "generation_timeout", "total"),
        ([ROLE, 5, GOOD], {"first_token_timeout": 0.2}, 200, "first_token_timeout", "first_token"),
        ([chunk("a"), 5, GOOD], {"idle_timeout": 0.2}, 200, "generation_stalled", "idle"),
        (
            [chunk("a"), *[0.05, chunk("a")] * 30, GOOD],
            {"total_timeout": 0.4, "idle_timeout": 2},
            200,
            "generation_timeout",
            "total",
        ),
        ([chunk("a"), *[0.05, b": ping\n\n"] * 30, GOOD], {"idle_timeout": 0.3}, 200, "generation_stalled", "idle"),
        ([chunk("a"), *[0.05, ROLE] * 30, GOOD], {"idle_timeout": 0.3}, 200, "generation_stalled", "idle"),
    ],
)
async def test_a_limit_ends_a_stream_with_its_code(
    steps: list[Any], settings: dict[str, Any], status: int, code: str, kind: str
) -> None:
    """As a status while nothing has left, else as the last event; comments and role chunks are no progress."""
    async with serving(streaming(*steps), hold=60, **settings) as server:
        answer = await server.ask(timeout=4)
        record = await server.one_record()
    error = answer.error if status != 200 else answer.event_error
    assert (answer.status, error["code"]) == (status, code)
    assert error["details"]["limit_seconds"] in settings.values()
    assert (record["timeout_kind"], record["error_code"], record["client_disconnected"]) == (kind, code, False)


async def test_steady_progress_meets_no_idle_limit() -> None:
    """Each token starts the idle limit again."""
    steps: list[bytes | float] = [chunk("a"), 0.05]
    steps = [*steps * 12, GOOD]
    async with serving(streaming(*steps), idle_timeout=0.4, first_token_timeout=0.4) as server:
        assert DONE.decode().strip().removeprefix("data: ") in (await server.ask()).events


async def test_a_slow_reader_is_no_stalled_engine() -> None:
    """While a write waits for the client, silence is the client's."""
    big = chunk("x" * 60_000)
    async with serving(streaming(*[big] * 60, GOOD), idle_timeout=0.3) as server, server.connect() as (reader, _):
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(1.0)
        body = await reader.read()
    assert b"generation_stalled" not in body


@pytest.mark.parametrize("header", ["200", "0", "1.5", "-3", "soon", "9" * 40])
async def test_the_callers_deadline(header: str) -> None:
    """`request-timeout-ms` counts from receipt; what cannot be read is refused, not ignored."""
    status, code = (504, "deadline_exceeded") if header == "200" else (400, "invalid_request_error")
    async with serving(answering(WHOLE, after=3)) as server:
        answer = await server.ask({"model": "m"}, headers={"request-timeout-ms": header}, timeout=2)
        record = await server.one_record()
    assert (answer.status, answer.error["code"]) == (status, code)
    assert record["deadline_ms"] == (200 if status == 504 else None)


async def test_a_deadline_only_shortens_the_servers_limits() -> None:
    """The nearest limit fires."""
    async with serving(answering(WHOLE, after=3), total_timeout=0.1) as server:
        assert (await server.ask({}, headers={"request-timeout-ms": "60000"})).error["code"] == "generation_timeout"
    async with serving(answering(WHOLE, after=3), total_timeout=60) as server:
        assert (await server.ask({}, headers={"request-timeout-ms": "100"})).error["code"] == "deadline_exceeded"


@pytest.mark.parametrize(("stream", "tokens"), [(True, 0), (True, 3), (False, 0), (False, 3)])
async def test_a_client_that_leaves_stops_the_engine_and_leaves_one_record(stream: bool, tokens: int) -> None:
    """Queued, streaming and non-stream: the application is told at once, the record has status 499 and the counts."""
    app = Stopwatch(stream=stream, tokens=tokens)
    async with serving(app, engine=Counting()) as server:
        async with server.connect({"model": "m", "stream": stream}):
            await app.begun.wait()
            await asyncio.sleep(0.05)
        async with asyncio.timeout(0.5):
            await app.ended.wait()
        record = await server.one_record()
    assert (record["outcome"], record["error_code"], record["http_status"]) == ("cancelled", "client_disconnected", 499)
    assert record["client_disconnected"] is True
    assert record["disconnect_phase"] == ("generating" if tokens else "queued")
    assert record["wasted"] is bool(tokens)
    if tokens:
        assert (record["tokens_at_disconnect"], record["tokens_after_disconnect"]) == (tokens, 0)
    assert record["generation_time_after_disconnect_ms"] < 500


async def test_a_client_that_leaves_in_the_middle_of_its_request_leaves_a_record() -> None:
    """The body never came whole."""
    async with serving(answering(WHOLE)) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        record = await server.one_record()
    assert (record["error_code"], record["http_status"], record["outcome"]) == ("client_disconnected", 499, "cancelled")


@pytest.mark.parametrize("limit", ["idle_timeout", "first_token_timeout", "queue_timeout"])
async def test_limits_on_tokens_reach_whole_answers_where_the_engine_counts(limit: str) -> None:
    """Nothing is on the wire before the end, so only the engine's word tells that nothing happens."""
    app = Stopwatch(stream=False, tokens=2 if limit == "idle_timeout" else 0)
    settings: dict[str, Any] = {limit: 0.2}
    async with serving(app, engine=Counting(), **settings) as server:
        answer = await server.ask({"model": "m"}, timeout=3)
    assert answer.error["code"] == limit.replace("idle_timeout", "generation_stalled")
    assert app.ended.is_set()


async def test_without_such_an_engine_a_whole_answer_has_its_time() -> None:
    """What cannot be seen does not time out."""
    async with serving(
        answering(WHOLE, after=0.5), idle_timeout=0.1, first_token_timeout=0.1, queue_timeout=0.1
    ) as server:
        assert (await server.ask({"model": "m"})).status == 200


async def test_a_scheduled_request_waits_no_longer_for_its_turn() -> None:
    """The queue's limit ends when the engine begins, though the first token may take long."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        ticket = current()
        assert ticket is not None
        ticket.scheduled()
        await answering(WHOLE, after=0.5)(scope, receive, send)

    async with serving(app, engine=Counting(), queue_timeout=0.2) as server:
        assert (await server.ask({"model": "m"})).status == 200


async def test_an_application_that_does_not_listen_is_cancelled_and_the_client_does_not_wait_for_it() -> None:
    """The answer comes at the limit, whatever the application does."""
    done = asyncio.Event()
    async with serving(stubborn(done.set), total_timeout=0.1) as server:
        async with asyncio.timeout(0.5):
            assert (await server.ask({"model": "m"})).error["code"] == "generation_timeout"
        async with asyncio.timeout(5):
            await done.wait()
