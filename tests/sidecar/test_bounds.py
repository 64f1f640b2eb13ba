"""How much and how long a caller may send, and how an answer ends that comes before the end of its request."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.shim.apps import DONE, ROLE, chunk
from tests.shim.wire import read_answer
from tests.sidecar.raw import BODY, CHAT, CHUNKED, FILES, IN_CHUNKS, LENGTH, asked, behind
from tests.sidecar.wire import EVENTS_HEAD, WORDS, Call, chunked, exchange, sidecar, upstream

from lastword_shim.sidecar import clock

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"GET /v1/models HTTP/1.1\r\nhost: a\r\n", b"x-a: " + b"b" * 1000 + b"\r\n"),
        (b"GET /v1/models HTTP/1.1\r\nx-a: ", b"b" * 1000),
        (b"GET /", b"a" * 1000),
        (b"", b"\r\n" * 500),
        (CHAT + CHUNKED + b"\r\n" + IN_CHUNKS + b"0\r\n", b"x-a: " + b"b" * 1000 + b"\r\n"),
        (CHAT + CHUNKED + b"\r\n5;", b"a" * 1000),
    ],
    ids=["fields", "field", "target", "lines", "trailers", "extension"],
)
async def test_what_has_no_end_is_cut(begin: bytes, more: bytes) -> None:
    """Of a head, trailers or framing no more is taken than about twice the bound."""
    async with behind(max_header_bytes=4096) as (engine, server):
        answer = await asked(server.port, begin, *([more] * 40))
        assert (answer.status, answer.error["code"]) == (413, "request_too_large")
        if begin.startswith(b"POST"):
            record = await server.one_record()
            assert (record["state"], record["error_code"]) == ("rejected", "request_too_large")
    assert engine.calls == []


async def test_a_long_body_has_no_such_bound() -> None:
    async with behind(max_header_bytes=4096) as (engine, server):
        pieces = [b"x" * 7] * 20000
        sent = FILES + CHUNKED + b"\r\n" + chunked(*pieces) + b"0\r\n\r\n"
        assert (await asked(server.port, sent)).status == 200
    assert len(engine.call.body) == 140_000


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", None),
        (b"GET /v1/mo", 400),
        (b"GET /v1/models HTTP/1.1\r\nhost: a\r\n", 400),
        (CHAT + LENGTH + b"\r\n{", 400),
    ],
    ids=["nothing", "line", "fields", "body"],
)
async def test_what_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, sent: bytes, status: int | None
) -> None:
    monkeypatch.setitem(clock.TIMES, clock.HEAD, 0.2)
    monkeypatch.setitem(clock.TIMES, clock.BODY, 0.2)
    async with behind() as (engine, server):
        got = await exchange(server.port, sent)
        assert (int(got.split(b" ")[1]) if got else None) == status
        if sent.startswith(CHAT):
            record = await server.one_record()
            assert (record["state"], record["error_code"]) == ("rejected", "invalid_request_error")
    assert engine.calls == []


async def test_a_body_that_keeps_coming_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(clock.TIMES, clock.BODY, 0.3)
    async with behind() as (engine, server):
        parts = (CHAT + LENGTH + b"\r\n", *(BODY[at : at + 1] for at in range(len(BODY))))
        assert (await asked(server.port, *parts)).status == 200
    assert engine.call.body == BODY


async def test_an_idle_connection_is_closed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(clock.TIMES, clock.IDLE, 0.2)
    async with behind() as (_, server):
        assert (await exchange(server.port, CHAT + LENGTH + b"\r\n" + BODY)).count(b"HTTP/1.1 200 ") == 1


@pytest.mark.parametrize(
    ("sent", "settings"),
    [
        (CHAT + b"expect: 100-continue\r\ncontent-length: 2000\r\n\r\n", {"max_body_bytes": 1000}),
        (FILES + CHUNKED + b"\r\n" + chunked(b"x" * 2000), {"max_body_bytes": 1000}),
        (FILES + b"x-a: " + b"b" * 3000 + b"\r\ncontent-length: 9\r\n\r\n", {"max_header_bytes": 2000}),
    ],
    ids=["expects", "upload", "head"],
)
async def test_a_refusal_before_the_body_closes(sent: bytes, settings: dict[str, int]) -> None:
    """Else the next request would be taken for the body."""
    async with behind(**settings) as (engine, server):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sent)
        async with asyncio.timeout(5):
            answer = await read_answer(reader)
            writer.write(CHAT + LENGTH + b"\r\n" + BODY)
            assert (answer.status, answer.header("connection")) == (413, "close")
            assert await reader.read() == b""
        writer.close()
    assert all(call.body != BODY for call in engine.calls)


async def test_a_refusal_is_read_by_one_that_still_sends() -> None:
    """Its bytes are taken until it has had the time to look."""
    async with behind(max_body_bytes=1000) as (_, server):
        got = await asked(server.port, CHAT + b"content-length: 9000000\r\n\r\n" + b"x" * 9_000_000)
        assert (got.status, got.error["code"]) == (413, "request_too_large")


@pytest.mark.parametrize("asks", [b"", b"connection: keep-alive\r\n"])
async def test_one_that_speaks_http_1_0_gets_no_chunks(asks: bytes) -> None:
    """Its stream ends with the connection."""

    async def handler(call: Call) -> None:
        await call.send(EVENTS_HEAD + WORDS + b"0\r\n\r\n")

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        sent = json.dumps({"model": "m", "stream": True}).encode()
        old = CHAT.replace(b"HTTP/1.1", b"HTTP/1.0") + asks + b"content-length: %d\r\n\r\n" % len(sent) + sent
        head, _, body = (await exchange(server.port, old)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"transfer-encoding" not in head
        assert b"\r\nconnection: close" in head
        assert body == ROLE + chunk("Hello") + chunk(finish="stop") + DONE


async def test_half_an_answer_by_http_1_0_does_not_pass_for_a_whole_one() -> None:
    """Where the connection's end is the answer's, an answer that broke off ends with a reset."""

    async def handler(call: Call) -> None:
        await call.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunked(b"half"))
        await asyncio.sleep(0.1)
        call.reset()

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        with pytest.raises(ConnectionResetError):
            await exchange(server.port, b"GET /metrics HTTP/1.0\r\n\r\n")
