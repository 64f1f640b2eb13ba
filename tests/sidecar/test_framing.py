"""What a caller's bytes may be, and what is said where they are none: in the contract's words, and the record agrees."""

from __future__ import annotations

import asyncio

import pytest
from tests.shim.wire import read_answer
from tests.sidecar.raw import BODY, CHAT, CHUNKED, FILES, HANDSHAKE, IN_CHUNKS, LENGTH, METRICS, asked, behind
from tests.sidecar.wire import WHOLE, Call, exchange, plain, sidecar, upstream

pytestmark = pytest.mark.anyio
EVERY_ROUTE = pytest.mark.parametrize("head", [CHAT, FILES, METRICS], ids=["judged", "upload", "left alone"])


# A body is not lost.


@EVERY_ROUTE
@pytest.mark.parametrize("wish", [b"foo", b"h2c", b"TLS/1.0"])
@pytest.mark.parametrize(("framing", "body"), [(LENGTH, BODY), (CHUNKED, IN_CHUNKS + b"0\r\n\r\n")])
@pytest.mark.parametrize("cut", [None, 0, 5])
async def test_a_wish_for_another_protocol_is_overlooked(
    head: bytes, wish: bytes, framing: bytes, body: bytes, cut: int | None
) -> None:
    """The body comes to the engine as it was sent, and the next request on the connection is served too."""
    async with behind() as (engine, server):
        sent = head + b"connection: upgrade\r\nupgrade: " + wish + b"\r\n" + framing + b"\r\n"
        parts = (sent + body,) if cut is None else (sent + body[:cut], body[cut:])
        assert (await asked(server.port, *parts)).status == 200
        assert engine.call.body == BODY
        both = await exchange(server.port, sent + body + head + b"connection: close\r\n" + framing + b"\r\n" + body)
        assert both.count(b"HTTP/1.1 200 ") == 2
    assert [call.body for call in engine.calls] == [BODY] * 3


async def test_a_body_coded_as_nobody_here_can_read_is_refused() -> None:
    async with behind() as (engine, server):
        answer = await asked(server.port, CHAT + b"transfer-encoding: gzip, chunked\r\n\r\n" + IN_CHUNKS + b"0\r\n\r\n")
        assert (answer.status, answer.error["code"]) == (400, "invalid_request_error")
    assert engine.calls == []


# Trailers are no fields.


@EVERY_ROUTE
@pytest.mark.parametrize("pause", [False, True], ids=["one packet", "several"])
async def test_trailers_are_dropped(head: bytes, *, pause: bool) -> None:
    trailers = b"0\r\nx-user: evil\r\nauthorization: Bearer sk-evil\r\nx-request-id: evil\r\n\r\n"
    async with behind() as (engine, server):
        parts = (head + CHUNKED + b"\r\n", IN_CHUNKS + trailers)
        answer = await asked(server.port, *(parts if pause else (b"".join(parts),)))
        assert answer.status == 200
    assert b"evil" not in engine.call.head
    assert engine.call.body == BODY
    assert all("evil" not in record["request_id"] for record in server.records)


# What cannot be read.


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v1/mo dels HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nhost: a\r\n: v\r\n\r\n",
        CHAT + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        CHAT + LENGTH + CHUNKED + b"\r\n" + IN_CHUNKS + b"0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\nhost: a\r\n\r\n",
    ],
    ids=["TLS", "target", "field", "lengths", "length and chunks", "HTTP/2", "CONNECT", "not ASCII"],
)
async def test_a_head_that_is_none(sent: bytes) -> None:
    """Said, and closed; it was no request, so it leaves no record."""
    async with behind() as (engine, server):
        answer = await asked(server.port, sent)
        assert (answer.status, answer.error["code"], answer.header("connection")) == (
            400,
            "invalid_request_error",
            "close",
        )
        assert "RFC9112" in answer.error["message"]
        assert server.records == []
    assert engine.calls == []


@EVERY_ROUTE
@pytest.mark.parametrize(
    "body",
    [b"xx\r\n", b"5;\nxx\r\nhello\r\n", IN_CHUNKS + b"nonsense\r\n", IN_CHUNKS + b"0\r\ncontent-length: 3\r\n\r\n"],
    ids=["size", "extension", "next size", "trailer"],
)
@pytest.mark.parametrize("pause", [False, True], ids=["one packet", "several"])
async def test_a_body_that_is_none(head: bytes, body: bytes, *, pause: bool) -> None:
    """The client is told, and the record does not say that it left."""
    async with behind() as (_, server):
        parts = (head + CHUNKED + b"\r\n", body)
        answer = await asked(server.port, *(parts if pause else (b"".join(parts),)))
        assert (answer.status, answer.error["code"], answer.header("connection")) == (
            400,
            "invalid_request_error",
            "close",
        )
        if head is not METRICS:
            record = await server.one_record()
            assert (record["state"], record["error_code"], record["http_status"]) == (
                "rejected",
                "invalid_request_error",
                400,
            )
            assert not record["client_disconnected"]


async def test_what_is_none_behind_a_request_does_not_harm_it() -> None:
    """It is answered in its turn."""
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def handler(call: Call) -> None:
        reached.set()
        await go_on.wait()
        await call.send(plain(WHOLE))

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(CHAT + LENGTH + b"\r\n" + BODY + b"\x16\x03\x01garbage\r\n\r\n")
        await reached.wait()
        go_on.set()
        async with asyncio.timeout(5):
            assert (await read_answer(reader)).status == 200
            assert (await read_answer(reader)).error["code"] == "invalid_request_error"
            assert await reader.read() == b""
        writer.close()
        assert (await server.one_record())["state"] == "completed"


@pytest.mark.parametrize(
    "sent",
    [
        CHAT + b"connection: upgrade\r\nupgrade: websocket\r\n" + LENGTH + b"\r\n" + BODY,
        HANDSHAKE + b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\ncontent-length: 5\r\n\r\nhello",
        HANDSHAKE + b"\r\n",
    ],
    ids=["POST", "with a body", "without a key"],
)
async def test_a_handshake_that_is_none(sent: bytes) -> None:
    async with behind() as (engine, server):
        answer = await asked(server.port, sent)
        assert (answer.status, answer.error["param"]) == (400, "upgrade")
    assert engine.calls == []
