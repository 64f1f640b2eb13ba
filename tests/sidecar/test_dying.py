"""Whether an upstream whose connection broke lives, is dying, or only does not speak."""

from __future__ import annotations

import asyncio
import socket

import pytest

from lastword_shim.sidecar.address import Address
from lastword_shim.sidecar.health import Health
from lastword_shim.sidecar.pool import Pool


def health_of(port: int) -> Health:
    return Health(Pool(Address("http", "127.0.0.1", port), connect_timeout=3, keep_alive=4))


@pytest.mark.anyio
async def test_one_that_ceases_to_listen_a_moment_later_is_gone() -> None:
    """As a process that is killed on a busy machine: its listener outlives its connections, and answers nobody."""
    listener = socket.create_server(("127.0.0.1", 0))
    health = health_of(listener.getsockname()[1])
    asyncio.get_running_loop().call_later(0.5, listener.close)
    async with asyncio.timeout(5):
        assert await health.is_gone()
    assert health.condition == "dead"


@pytest.mark.anyio
@pytest.mark.parametrize("said", [b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", b"no HTTP", b""])
async def test_one_that_takes_connections_lives_whatever_it_says(said: bytes) -> None:
    """An answer, something else, or the end of the connection."""

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        health = health_of(server.sockets[0].getsockname()[1])
        async with asyncio.timeout(5):
            assert not await health.is_gone()
    assert health.condition is None


@pytest.mark.anyio
async def test_one_that_is_silent_but_listens_is_not_gone() -> None:
    """What it is waits for the timers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.timeout(5):
            assert not await health_of(listener.getsockname()[1]).is_gone()
