"""WebSockets pass both ways: words, bytes, subprotocols, close codes, and refusals."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any

import pytest
import websockets.asyncio.server
from tests.shim.wire import Server
from tests.sidecar.wire import sidecar
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol
from websockets.utils import accept_key

pytestmark = pytest.mark.anyio
Handler = Callable[[ServerConnection], Awaitable[None]]


@contextlib.asynccontextmanager
async def between(handler: Handler, **options: Any) -> AsyncIterator[tuple[Server, websockets.asyncio.server.Server]]:
    async with serve(handler, "127.0.0.1", 0, **options) as engine:
        port = next(iter(engine.sockets)).getsockname()[1]
        async with sidecar(f"http://127.0.0.1:{port}") as server:
            yield server, engine


def url(server: Server) -> str:
    return f"ws://127.0.0.1:{server.port}/v1/realtime?model=m%2Fn"


async def echo(connection: ServerConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        while True:
            await connection.send(await connection.recv())


async def test_what_is_said_passes_both_ways() -> None:
    """Text and bytes, large ones too; path, query and key."""
    seen: list[Any] = []

    async def handler(connection: ServerConnection) -> None:
        seen.append(connection.request)
        await echo(connection)

    async with between(handler, max_size=None) as (server, _):
        async with connect(url(server), additional_headers={"authorization": "Bearer k"}, max_size=None) as client:
            for said in ("text", b"\x00\xff", "x" * 3_000_000, ""):
                await client.send(said)
                assert await client.recv() == said
    assert seen[0].path == "/v1/realtime?model=m%2Fn"
    assert (seen[0].headers["authorization"], seen[0].headers["x-forwarded-for"]) == ("Bearer k", "127.0.0.1")


async def test_the_subprotocol_is_the_upstreams_choice() -> None:
    async with between(echo, subprotocols=[Subprotocol("b")]) as (server, _):
        async with connect(url(server), subprotocols=[Subprotocol("a"), Subprotocol("b")]) as client:
            assert client.subprotocol == "b"


@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (1001, "away"), (4321, "a reason of its own")])
async def test_the_upstreams_close_passes(code: int, reason: str) -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.close(code, reason)

    async with between(handler) as (server, _), connect(url(server)) as client:
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert (client.close_code, client.close_reason) == (code, reason)


@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (4321, "enough")])
async def test_the_callers_close_passes(code: int, reason: str) -> None:
    closed: asyncio.Future[tuple[int | None, str | None]] = asyncio.get_running_loop().create_future()

    async def handler(connection: ServerConnection) -> None:
        await connection.wait_closed()
        closed.set_result((connection.close_code, connection.close_reason))

    async with between(handler) as (server, _), connect(url(server)) as client:
        await client.close(code, reason)
        assert await asyncio.wait_for(closed, 3) == (code, reason)


async def test_a_caller_that_vanishes_is_gone_for_the_upstream_too() -> None:
    closed = asyncio.Event()

    async def handler(connection: ServerConnection) -> None:
        await connection.wait_closed()
        closed.set()

    async with between(handler) as (server, _), connect(url(server)) as client:
        client.transport.abort()
        async with asyncio.timeout(3):
            await closed.wait()


async def test_an_upstream_that_vanishes_is_told_as_such() -> None:
    """1014, Bad Gateway: it said nothing itself."""

    async def handler(connection: ServerConnection) -> None:
        connection.transport.abort()

    async with between(handler) as (server, _), connect(url(server)) as client:
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == 1014


@contextlib.asynccontextmanager
async def raw_upstream(
    after: bytes, *, accepts: bool = True
) -> AsyncIterator[tuple[str, asyncio.Event, asyncio.Future[float]]]:
    """One that says ``after`` once it has accepted, and then nothing, not even Close; and how long until it was left."""
    left: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if "upgrade" not in head.lower():
            writer.close()
            return
        if accepts:
            key = re.findall(r"(?i)sec-websocket-key: (\S+)", head)[0]
            fields = f"upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: {accept_key(key)}"
            writer.write(f"HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n\r\n".encode() + after)
        began.set()
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                pass
        left.set_result(time.monotonic())
        writer.close()

    began = asyncio.Event()
    listener = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    async with listener, sidecar(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}") as server:
        yield url(server), began, left


async def test_an_upstream_that_does_not_answer_the_close_is_not_waited_for() -> None:
    async with raw_upstream(b"") as (address, _, left):
        client = await connect(address)
        await asyncio.sleep(0.05)
        client.transport.abort()
        began = time.monotonic()
        assert await asyncio.wait_for(left, 3) - began < 1


async def test_one_that_leaves_before_it_is_accepted_is_gone_at_once() -> None:
    async with raw_upstream(b"", accepts=False) as (address, begun, left):
        connecting = asyncio.create_task(connect(address).__aenter__())
        await asyncio.wait_for(begun.wait(), 3)
        connecting.cancel()
        began = time.monotonic()
        assert await asyncio.wait_for(left, 3) - began < 1


@pytest.mark.parametrize("frame", [b"\xff\xff\xff", b"\x81\x02\xff\xff", b"\x88\x02\x03\xe8"])
async def test_what_is_no_frame_is_told_at_once(frame: bytes) -> None:
    """So is a Close whose connection stays open."""
    async with raw_upstream(frame) as (address, _, left), connect(address) as client:
        began = time.monotonic()
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(client.recv(), 3)
        assert client.close_code == (1000 if frame[0] == 0x88 else 1014)
        assert await asyncio.wait_for(left, 3) - began < 1


async def refused(server: Server) -> Any:
    with pytest.raises(InvalidStatus) as caught:
        await connect(url(server))
    return caught.value.response


async def test_the_upstreams_refusal_passes() -> None:
    """With its status, and what it says."""

    def reject(connection: ServerConnection, _request: object) -> Any:
        return connection.respond(HTTPStatus.UNAUTHORIZED, "no key\n")

    async with between(echo, process_request=reject) as (server, _):
        response = await refused(server)
    assert (response.status_code, response.body) == (401, b"no key\n")


async def test_nobody_listens() -> None:
    async with serve(echo, "127.0.0.1", 0) as engine:
        port = next(iter(engine.sockets)).getsockname()[1]
    async with sidecar(f"http://127.0.0.1:{port}") as server:
        response = await refused(server)
    assert response.status_code == 503
    assert b'"engine_unavailable"' in response.body


async def test_without_the_package_they_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    async with between(echo) as (server, _):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "websockets.asyncio.client", None)
            response = await refused(server)
    assert response.status_code == 501
    assert b'"not_implemented"' in response.body


async def test_a_stop_of_the_sidecar_closes_them() -> None:
    async with between(echo) as (server, _):
        client = await connect(url(server))
        server.uvicorn.should_exit = True
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(client.recv(), 5)
        assert client.close_code == 1012
