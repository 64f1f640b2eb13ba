"""Whether the upstream is ready, as `/lastword/ready` tells it: by a look of its own, and never by waiting for long."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.shim.wire import Server
from tests.sidecar.wire import Call, plain, sidecar, upstream

from lastword_shim.sidecar.health import Health

pytestmark = pytest.mark.anyio


async def ready(server: Server) -> tuple[int, bytes]:
    answer = await server.ask(b"", path="/lastword/ready", method="GET", timeout=3)
    return answer.status, answer.body.strip()


def health(server: Server) -> Health:
    found: Health = server.uvicorn._health  # type: ignore[attr-defined]
    return found


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastword_shim.sidecar.health.PATIENCE", 0.4)
    monkeypatch.setattr("lastword_shim.sidecar.health._AT_MOST", 0.1)
    monkeypatch.setattr("lastword_shim.sidecar.health._REMEMBERED", 0.0)


@pytest.mark.parametrize(
    ("answer", "status", "word"),
    [
        (plain(b""), 200, b"ready"),
        (plain(b"", status=404), 200, b"ready"),
        (plain(b'{"error":"Unauthorized"}', status=401), 200, b"ready"),
        (
            plain(b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}', status=503),
            503,
            b"loading",
        ),
        (plain(b"", status=503), 503, b"dead"),
        (plain(b"", status=500), 503, b"dead"),
        (b"no HTTP\r\n\r\n", 503, b"dead"),
    ],
)
async def test_what_its_health_says(answer: bytes, status: int, word: bytes) -> None:
    """Anything but a server's error will do: not every server has such a route."""

    async def handler(call: Call) -> None:
        await call.send(answer)
        call.close()

    async with upstream(handler, health=False) as engine, sidecar(engine.url) as server:
        assert await ready(server) == (status, word)


async def test_one_that_comes_and_goes() -> None:
    """Each question is answered by a fresh look."""

    async def handler(call: Call) -> None:
        await call.send(plain())

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        assert (await ready(server))[0] == 200
        async with upstream(handler) as other:
            gone = other.url
        health(server)._pool.address = type(health(server)._pool.address).parse(gone)
        assert await ready(server) == (503, b"dead")
        health(server)._pool.address = type(health(server)._pool.address).parse(engine.url)
        assert (await ready(server))[0] == 200


async def test_one_that_does_not_answer_keeps_nobody_waiting() -> None:
    """The first question gets what was known; once the time for an answer is over, it counts as dead."""
    asked = 0

    async def handler(call: Call) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            await call.send(plain())
        await call.gone()

    async with upstream(handler, health=False) as engine, sidecar(engine.url) as server:
        began = time.monotonic()
        assert (await ready(server))[0] == 200
        assert time.monotonic() - began < 0.3
        await asyncio.sleep(0.4)
        assert await ready(server) == (503, b"dead")
        assert asked <= 3


async def test_traffic_tells_too() -> None:
    """A request that finds nobody makes it dead, one that is answered makes it live."""

    async def handler(call: Call) -> None:
        await call.send(plain())

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        health(server).heard(reachable=False)
        conditions = [health(server).condition]
        assert (await server.ask(b"{}", path="/tokenize")).status == 200
        assert [*conditions, health(server).condition] == ["dead", None]
    async with sidecar(engine.url) as server:
        health(server).condition = None
        assert (await server.ask(b"{}", path="/tokenize")).status == 503
        assert health(server).condition == "dead"


async def test_many_questions_are_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastword_shim.sidecar.health._REMEMBERED", 5.0)
    looks = 0

    async def handler(call: Call) -> None:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0.05)
        await call.send(plain())

    async with upstream(handler, health=False) as engine, sidecar(engine.url) as server:
        health(server)._looked_at = float("-inf")
        assert {status for status, _ in await asyncio.gather(*(ready(server) for _ in range(10)))} == {200}
        assert {status for status, _ in await asyncio.gather(*(ready(server) for _ in range(10)))} == {200}
    assert looks <= 2  # one of them is the start's
