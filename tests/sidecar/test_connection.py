"""One connection to the upstream that closes at a bad moment, on either event loop."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from lastword_shim.sidecar.address import Address
from lastword_shim.sidecar.connection import Connection
from lastword_shim.sidecar.failures import Broken
from lastword_shim.sidecar.http1 import Http1
from lastword_shim.sidecar.pool import Pool

Run = Callable[[Coroutine[Any, Any, None]], None]
pytestmark = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@asynccontextmanager
async def just_reset() -> AsyncIterator[Connection]:
    """A connection that the upstream has accepted and reset."""

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pool = Pool(Address("http", "127.0.0.1", port), connect_timeout=3, keep_alive=4)
    connection = await pool.open()
    try:
        while connection.is_usable():
            await asyncio.sleep(0.01)
        yield connection
    finally:
        connection.close()
        server.close()


def test_one_that_is_reset_before_the_request_is_broken(run: Run) -> None:
    async def test() -> None:
        async with asyncio.timeout(3), just_reset() as connection:
            http = Http1()
            connection.begin(http, http.request(b"GET", b"/", [(b"host", b"a")]) + http.end())
            with pytest.raises(Broken):
                await connection.head()
            assert not connection.finish()

    run(test())
