"""The upstream is told what is left of the caller's deadline, not the whole of it again."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.shim.test_admission_bounds import until, waiting
from tests.sidecar.wire import WHOLE, Call, plain, sidecar, upstream

pytestmark = pytest.mark.anyio
DEADLINE = 60_000
LEAST = 200
"""Milliseconds that are spent in the sidecar at least."""


def spent(call: Call) -> float:
    told = call.field("request-timeout-ms")
    assert told is not None
    return DEADLINE - int(told)


async def test_without_the_wait_for_a_place() -> None:
    """The second of two waits until the first is answered; the first has all of its time."""
    go_on = asyncio.Event()

    async def handler(call: Call) -> None:
        await go_on.wait()
        await call.send(plain(WHOLE))

    async with upstream(handler) as engine, sidecar(engine.url, max_inflight=1, max_queued=1) as server:
        first = asyncio.create_task(server.ask({"model": "m"}, headers={"request-timeout-ms": str(DEADLINE)}))
        await until(lambda: len(engine.calls) == 1, "one at the engine")
        began = time.monotonic()
        second = asyncio.create_task(server.ask({"model": "m"}, headers={"request-timeout-ms": str(DEADLINE)}))
        await until(lambda: waiting(server) == 1, "one in line")
        await asyncio.sleep(LEAST / 1000)
        go_on.set()
        assert {(await first).status, (await second).status} == {200}
        passed = (time.monotonic() - began) * 1000
    assert 0 <= spent(engine.calls[0]) < LEAST
    assert LEAST <= spent(engine.calls[1]) <= passed


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
async def test_without_the_time_that_its_body_took(path: str) -> None:
    async def handler(call: Call) -> None:
        await call.send(plain(WHOLE, extra="connection: close\r\n"))

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = f"POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 14\r\n"
        writer.write(f"{head}request-timeout-ms: {DEADLINE}\r\n\r\n".encode() + b'{"model"')
        await asyncio.sleep(LEAST / 1000 + 0.05)
        writer.write(b': "m"}')
        assert (await reader.readline()).split()[1] == b"200"
        writer.close()
        await writer.wait_closed()
    assert spent(engine.call) >= LEAST
