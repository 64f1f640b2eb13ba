"""Connections to the upstream are used again while that is safe, and nothing is ever sent twice."""

from __future__ import annotations

import asyncio

import pytest
from tests.sidecar.wire import Call, plain, sidecar, upstream

pytestmark = pytest.mark.anyio


async def fine(call: Call) -> None:
    await call.send(plain())


async def ask(server: object, count: int, *, pause: float = 0) -> list[int]:
    statuses = []
    for _ in range(count):
        statuses.append((await server.ask(b"{}", path="/tokenize")).status)  # type: ignore[attr-defined]
        await asyncio.sleep(pause)
    return statuses


async def test_one_connection_serves_one_request_after_the_other() -> None:
    async with upstream(fine) as engine, sidecar(engine.url) as server:
        assert await ask(server, 5) == [200] * 5
    assert [call.connection for call in engine.calls] == [0] * 5


@pytest.mark.parametrize(
    "answer",
    [
        plain(extra="connection: close\r\n"),
        plain(extra="keep-alive: timeout=1\r\n"),
        plain(extra="keep-alive: timeout=5, max=0\r\n"),
        plain() + b"HTTP/1.1 200 OK\r\n\r\nwhat nobody asked for",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ],
)
async def test_an_upstream_may_not_want_that(answer: bytes) -> None:
    """By its words, or by saying more than it was asked."""

    async def handler(call: Call) -> None:
        await call.send(answer)

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        assert await ask(server, 3) == [200] * 3
    assert [call.connection for call in engine.calls] == [0, 1, 2]


async def test_nor_the_operator() -> None:
    async with upstream(fine) as engine, sidecar(engine.url, service={"keep_alive": 0}) as server:
        assert await ask(server, 3) == [200] * 3
    assert [call.connection for call in engine.calls] == [0, 1, 2]


async def test_an_idle_connection_is_given_up_before_the_upstream_would_close_it() -> None:
    async def handler(call: Call) -> None:
        await call.send(plain())
        if call.connection == 0:
            await call.gone()

    async with upstream(handler) as engine, sidecar(engine.url, service={"keep_alive": 0.15}) as server:
        assert await ask(server, 1) == [200]
        async with asyncio.timeout(2):
            while engine.calls[0].closed_at is None:
                await asyncio.sleep(0.01)
        assert await ask(server, 1) == [200]
    assert engine.connections == 2


@pytest.mark.parametrize("wait", [0, 0.02, 0.1])
@pytest.mark.parametrize("reset", [True, False])
async def test_an_upstream_that_closes_early_costs_no_request(wait: float, reset: bool) -> None:
    """It says that it keeps the connection, and closes it at once, or a moment later: found out before anything is sent."""

    async def handler(call: Call) -> None:
        await call.send(plain())
        await asyncio.sleep(wait)
        if reset:
            call.reset()
        else:
            call.close()

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        assert await ask(server, 6, pause=0.05 if wait == 0.02 else 0.15 if wait else 0.01) == [200] * 6
    assert len(engine.calls) == 6


async def test_a_close_that_has_come_and_not_been_noticed_yet() -> None:
    """The loop has been busy: the system knows of it, and is asked before the request is written."""
    done = asyncio.Event()

    async def handler(call: Call) -> None:
        await call.send(plain())
        await done.wait()
        call.close()

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        pool = server.uvicorn._pool  # type: ignore[attr-defined]
        assert await ask(server, 1) == [200]
        connection = pool._idle[-1]
        assert connection.is_usable()
        connection._transport.pause_reading()  # as if the loop had had no time for it
        done.set()
        await engine.ended.wait()
        await asyncio.sleep(0.02)
        assert connection in pool._idle
        assert not connection.is_usable()
        assert await ask(server, 1) == [200]
    assert [call.connection for call in engine.calls] == [0, 1]


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_what_was_sent_and_not_answered_is_not_sent_again(method: str) -> None:
    """Not even where the connection had been used before, and whatever the method: the request may be at work."""

    async def handler(call: Call) -> None:
        if len(engine.calls) == 2:
            call.reset()
        else:
            await call.send(plain())

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        answers = [await server.ask(b"", path="/v1/files", method=method) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 502, 200]
    assert [call.connection for call in engine.calls] == [0, 0, 1]


async def test_an_upstream_that_closes_soon_is_believed_for_a_while() -> None:
    """What was learned from one connection holds for the next ones."""

    async def handler(call: Call) -> None:
        await call.send(plain())
        await asyncio.sleep(0.3)
        call.close()

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        assert await ask(server, 1, pause=0.5) == [200]
        assert await ask(server, 3) == [200] * 3
    assert [call.connection for call in engine.calls] == [0, 1, 2, 3]


async def test_one_that_closes_at_once_now_and_then_is_used_again() -> None:
    """A worker that has had its number of requests; the third time it is the upstream's way."""

    async def handler(call: Call) -> None:
        await call.send(plain())
        if len(engine.calls) in last:
            call.close()

    last = {1, 4, 6}
    async with upstream(handler) as engine, sidecar(engine.url) as server:
        assert await ask(server, 8, pause=0.05) == [200] * 8
    assert [call.connection for call in engine.calls] == [0, 1, 1, 1, 2, 2, 3, 4]


async def test_not_more_idle_connections_are_kept_than_are_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastword_shim.sidecar.pool.MOST_IDLE", 3)

    async def handler(call: Call) -> None:
        await asyncio.sleep(0.05)
        await call.send(plain())

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        answers = await asyncio.gather(*(server.ask(b"{}", path="/tokenize") for _ in range(10)))
        assert {answer.status for answer in answers} == {200}
        assert len(server.uvicorn._pool._idle) == 3  # type: ignore[attr-defined]
    assert engine.connections == 10
