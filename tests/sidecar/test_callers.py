"""Callers that leave where it is hard to see, and what else their side of the wire does to the requests on it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import struct
import time

import pytest
from tests.shim.apps import chunk
from tests.shim.wire import Server, request
from tests.sidecar.wire import EVENTS_HEAD, WHOLE, WORDS, Call, chunked, plain, sidecar, upstream

from lastword_shim.exchange import telling
from lastword_shim.sidecar import clock

pytestmark = pytest.mark.anyio
CHAT = "/v1/chat/completions"
UPLOAD = b"POST /v1/audio/transcriptions HTTP/1.1\r\nhost: a\r\ncontent-type: multipart/form-data; boundary=x\r\n"


def chat(name: str, *, stream: bool = False) -> bytes:
    sent = request({"model": name, "stream": stream}, CHAT, "POST", {"x-request-id": name})
    return sent.replace(b"connection: close\r\n", b"")


async def connected(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.setblocking(False)
    return client


async def fill(client: socket.socket, *, quiet: float = 0.5) -> None:
    """Send until nothing more is taken for a while."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(TimeoutError):
        while True:
            async with asyncio.timeout(quiet):
                await loop.sock_sendall(client, b"x" * 65536)


async def cancelled(server: Server, within: float) -> None:
    began = time.monotonic()
    async with asyncio.timeout(within):
        record = await server.one_record()
    assert (record["state"], record["error_code"], record["http_status"]) == ("cancelled", "client_disconnected", 499)
    assert time.monotonic() - began < within


@pytest.mark.parametrize("path", [b"/v1/audio/transcriptions", b"/v1/files", b"/metrics"])
@pytest.mark.parametrize("reset", [False, True], ids=["closes", "resets"])
async def test_one_that_leaves_an_upload_that_nobody_reads(path: bytes, *, reset: bool) -> None:
    """The end of what it sent cannot be read, and is not needed to see that it has gone; the upstream sees it likewise."""
    reached, go_on = asyncio.Event(), asyncio.Event()
    ended = select.poll()  # of its end and of errors a socket always tells

    async def handler(call: Call) -> None:
        ended.register(call.writer.get_extra_info("socket").fileno(), 0)
        reached.set()
        await go_on.wait()
        call.reset()

    async with upstream(handler, with_body=False) as engine, sidecar(engine.url) as server:
        client = await connected(server.port)
        head = UPLOAD.replace(b"/v1/audio/transcriptions", path) + b"content-length: 90000000\r\n\r\n" + b"x"
        await asyncio.get_running_loop().sock_sendall(client, head)
        await reached.wait()
        await fill(client)
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        if path != b"/metrics":
            await cancelled(server, 2)
        async with asyncio.timeout(2):
            while server.uvicorn.server_state.connections or server.uvicorn.server_state.tasks:
                await asyncio.sleep(0.01)
            while not ended.poll(0):
                await asyncio.sleep(0.01)
        go_on.set()


async def test_one_that_stays_through_a_long_upload_loses_nothing() -> None:
    """Part of the answer's first line comes ahead, and the answer is none the worse for it."""
    size, go_on = 20_000_000, asyncio.Event()

    async def handler(call: Call) -> None:
        await go_on.wait()
        got = await call.reader.readexactly(size)
        await call.send(plain(b"%d" % got.count(b"x")))

    async with upstream(handler, with_body=False) as engine, sidecar(engine.url) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(UPLOAD + b"content-length: %d\r\n\r\n" % size + b"x" * size)
        await asyncio.sleep(1.5)
        go_on.set()
        async with asyncio.timeout(5):
            assert await reader.readexactly(2) == b"HT"
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"TP/1.1 200 ")
            assert await reader.readexactly(8) == b"%d" % size
        writer.close()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("behind", [b"whole", b"half", b"\r\n"])
@pytest.mark.parametrize("reset", [False, True], ids=["closes", "resets"])
async def test_one_that_leaves_with_another_request_behind(behind: bytes, *, stream: bool, reset: bool) -> None:
    """The first ends at once; the second never began, and leaves no record."""
    reached = asyncio.Event()

    async def handler(call: Call) -> None:
        if stream:
            await call.send(EVENTS_HEAD + WORDS[:40])
        reached.set()
        await call.gone()

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        client = await connected(server.port)
        second = {b"whole": chat("second"), b"half": chat("second")[:50]}.get(behind, behind)
        await asyncio.get_running_loop().sock_sendall(client, chat("first", stream=stream) + second)
        await reached.wait()
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        await cancelled(server, 1)
        assert server.records[0]["request_id"] == "first"
        async with asyncio.timeout(1):
            while engine.call.closed_at is None:
                await asyncio.sleep(0.01)


async def test_requests_behind_one_another_are_answered_in_their_order() -> None:
    async def handler(call: Call) -> None:
        await asyncio.sleep(0.02 if b"m0" in call.body else 0)
        await call.send(plain(WHOLE.replace(b"Hi", json.loads(call.body)["model"].encode())))

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"".join(chat(f"m{number}") for number in range(20)))
        for number in range(20):
            async with asyncio.timeout(5):
                head = await reader.readuntil(b"\r\n\r\n")
                assert f"x-request-id: m{number}\r\n".encode() in head
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                assert b'"m%d"' % number in await reader.readexactly(length)
        writer.close()
        await server.one_record(20)
    assert len(engine.calls) == 20


async def test_one_whose_host_vanishes_is_noticed_by_the_system() -> None:
    async with sidecar("http://127.0.0.1:9") as server:
        client = await connected(server.port)
        async with asyncio.timeout(2):
            while not server.uvicorn.server_state.connections:
                await asyncio.sleep(0.01)
        (connection,) = server.uvicorn.server_state.connections
        accepted = connection._transport.get_extra_info("socket")  # type: ignore[union-attr]
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        spent = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        spent += accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) * (
            accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT)
        )
        assert spent == 60
        client.close()


async def test_one_that_never_reads_its_last_word_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is reset, so that neither a descriptor nor what waits for it stays."""
    monkeypatch.setattr(telling, "SEND_PATIENCE", 0.2)

    async def handler(call: Call) -> None:
        await call.send(EVENTS_HEAD)
        with contextlib.suppress(ConnectionError):
            while True:
                await call.send(chunked(chunk("x" * 10000)))

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        client = await connected(server.port)
        sent = chat("m", stream=True).replace(b"\r\n\r\n", b"\r\nrequest-timeout-ms: 700\r\n\r\n", 1)
        await asyncio.get_running_loop().sock_sendall(client, sent)
        assert (await server.one_record())["error_code"] == "deadline_exceeded"
        async with asyncio.timeout(2):
            while server.uvicorn.server_state.connections:
                await asyncio.sleep(0.01)
        with pytest.raises(ConnectionResetError):
            while await asyncio.get_running_loop().sock_recv(client, 1 << 20):
                pass
        client.close()


async def test_one_that_never_reads_a_whole_answer_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a time in which it has taken no byte; one that reads slowly has its whole answer."""
    monkeypatch.setattr(clock, "LOOK", 0.05)
    size = 20_000_000

    async def handler(call: Call) -> None:
        await call.send(plain(WHOLE.replace(b"Hi", b"x" * size)))

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        loop, sent = asyncio.get_running_loop(), request({"model": "m"}, CHAT, "POST", {})
        slow, never = await connected(server.port), await connected(server.port)
        for client in (slow, never):
            await loop.sock_sendall(client, sent)
        got = 0
        async with asyncio.timeout(10):
            while part := await loop.sock_recv(slow, 500_000):
                got += len(part)
                await asyncio.sleep(0.04)
            while server.uvicorn.server_state.connections:
                await asyncio.sleep(0.01)
        assert got > size
        slow.close()
        never.close()
