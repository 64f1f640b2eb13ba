"""A sidecar that has no descriptor left: that is its own want, and says nothing of an upstream that is well."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
from collections.abc import Iterator

import pytest
from tests.shim.apps import ROLE, chunk
from tests.sidecar.wire import EVENTS_HEAD, Call, chunked, plain, sidecar, upstream

from lastword_shim.sidecar.address import Address
from lastword_shim.sidecar.failures import NoRoom
from lastword_shim.sidecar.health import Health
from lastword_shim.sidecar.pool import Pool

pytestmark = pytest.mark.anyio


@contextlib.contextmanager
def no_descriptor_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def fine(call: Call) -> None:
    await call.send(plain())


@pytest.mark.parametrize(
    ("host", "words"),
    [("127.0.0.1", "OSError: [Errno 24] Too many open files"), ("localhost", "no descriptor is left; ")],
)
async def test_a_look_that_could_not_be_had_changes_nothing(host: str, words: str) -> None:
    """A name cannot even be looked up then."""
    async with upstream(fine) as engine:
        health = Health(Pool(Address("http", host, engine.port), connect_timeout=3, keep_alive=4))
        await health.look()
        with no_descriptor_left():
            with pytest.raises(NoRoom):
                await health.is_gone()
            await health.look()
        assert health.condition is None
        assert f"could not be asked: {words}" in health.said
        assert not await health.is_gone()


async def test_a_request_is_told_that_it_is_the_sidecars_own_want() -> None:
    request = b"POST %b HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    async with upstream(fine) as engine, sidecar(engine.url, service={"keep_alive": 0}) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(request % b"/v1/files")
        await reader.readuntil(b"{}")
        await asyncio.sleep(0.05)
        with no_descriptor_left():
            writer.write(request % b"/v1/chat/completions")
            answer = await reader.readuntil(b'"contract": "1"}}')
        writer.close()
    assert (b" 503 " in answer, b'"queue_overloaded"' in answer, b'"origin": "shim"' in answer) == (True, True, True)


async def test_an_upstream_that_cannot_be_looked_at_is_not_called_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection has broken, and whether it still listens cannot be seen."""

    async def refuse() -> object:
        raise NoRoom("none left")

    async def handler(call: Call) -> None:
        await call.send(EVENTS_HEAD + chunked(ROLE, chunk("Hel")))
        monkeypatch.setattr(server.uvicorn._pool, "open", refuse)  # type: ignore[attr-defined]
        call.close()

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        answer = await server.ask({"model": "m", "stream": True}, timeout=3)
        assert server.uvicorn._health.condition is None  # type: ignore[attr-defined]
    assert answer.event_error["code"] == "bad_gateway"
