"""What passes the sidecar passes as it is: requests, answers, and bodies of any size, as they come."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest
from tests.shim.apps import DONE, ROLE, chunk
from tests.shim.wire import read_answer
from tests.sidecar.wire import EVENTS_HEAD, LAST_CHUNK, WORDS, Call, chunked, exchange, plain, sidecar, upstream

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024
UPLOAD = b"POST /v1/files HTTP/1.1\r\nhost: a\r\nconnection: close\r\n"


def resident() -> int:
    """This process's memory in bytes; the sidecar runs in it."""
    return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * 4096


async def echo(call: Call) -> None:
    await call.send(plain(call.body or b"nothing", kind="text/plain"))


async def test_a_request_passes_as_it_was_sent() -> None:
    """Method, raw path, query, fields of one name, body; with what the sidecar adds."""
    async with upstream(echo) as engine, sidecar(engine.url) as server:
        sent = (
            b"PATCH /v1/files/a%2Fb%20c?x=%2F&y=+ HTTP/1.1\r\nHost: me\r\nX-Two: 1\r\nx-two: 2\r\nX-Name: Andr\xe9\r\n"
            b"Content-Length: 3\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\r\nabc"
        )
        got = await exchange(server.port, sent)
    assert got.endswith(b"abc")
    call = engine.call
    assert call.head.split(b"\r\n")[0] == b"PATCH /v1/files/a%2Fb%20c?x=%2F&y=+ HTTP/1.1"
    assert [value for name, value in call.fields if name == "x-two"] == ["1", "2"]
    assert (call.field("host"), call.field("x-forwarded-for")) == ("me", "127.0.0.1")
    assert call.field("x-hop") is None
    assert b"\r\nx-name: Andr\xe9\r\n" in call.head
    assert (call.body, call.field("content-length"), call.field("transfer-encoding")) == (b"abc", "3", None)


async def test_a_prefix_of_the_upstream_goes_before_the_path() -> None:
    async with upstream(echo) as engine, sidecar(f"{engine.url}/team/v1") as server:
        await server.ask(b"", path="/v1/models", method="GET")
    assert engine.call.head.startswith(b"GET /team/v1/models HTTP/1.1\r\n")


async def test_a_request_without_a_body_gets_none() -> None:
    async with upstream(echo) as engine, sidecar(engine.url) as server:
        await exchange(server.port, b"GET /v1/models HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        await exchange(server.port, b"POST /tokenize HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    assert [call.field("content-length") for call in engine.calls] == [None, "0"]


@pytest.mark.parametrize(
    ("method", "answer", "expected"),
    [
        (b"GET", b"HTTP/1.1 307 Moved\r\nlocation: http://me/x\r\ncontent-length: 0\r\n\r\n", [b"307", b"location: http://me/x"]),
        (b"GET", b"HTTP/1.1 200 OK\r\nset-cookie: a\r\nset-cookie: b\r\ncontent-length: 0\r\n\r\n",
         [b"set-cookie: a", b"set-cookie: b"]),
        (b"GET", b"HTTP/1.1 200 OK\r\nx-name: Andr\xe9\r\ncontent-length: 0\r\n\r\n", [b"x-name: Andr\xe9"]),
        (b"HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n", [b"content-length: 12"]),
        (b"GET", b"HTTP/1.1 204 No Content\r\ncontent-length: 9\r\n\r\n", [b"204"]),
        (b"GET", b'HTTP/1.1 304 Not Modified\r\netag: "e"\r\ncontent-length: 9\r\n\r\n', [b"304", b'etag: "e"']),
        (b"GET", b"HTTP/1.1 103 Early\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nserver: theirs\r\ncontent-length: 0\r\n\r\n",
         [b"HTTP/1.1 200", b"server: theirs"]),
        (b"GET", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n", [b"abc"]),
        (b"GET", b"HTTP/1.0 200 OK\r\nx-old: 1\r\n\r\nuntil the end", [b"x-old: 1", b"until the end"]),
    ],
)  # fmt: skip
async def test_an_answer_passes_as_it_is(method: bytes, answer: bytes, expected: list[bytes]) -> None:
    """Redirects, cookies, HEAD, 204, 304, informational answers before it, trailers after it, HTTP/1.0."""

    async def handler(call: Call) -> None:
        await call.send(answer)
        if answer.startswith(b"HTTP/1.0"):
            call.close()

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        got = await exchange(server.port, method + b" /v1/models HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    lowered = got.lower()
    assert all(each.lower() in lowered for each in expected), got
    assert b"/a>" not in got
    assert b"x-sum" not in lowered
    assert lowered.count(b"x-request-id") == 1
    if method == b"HEAD" or b"204" in expected[0] or b"304" in expected[0]:
        assert got.endswith(b"\r\n\r\n")


async def test_a_compressed_answer_stays_compressed() -> None:
    packed = gzip.compress(b"[1, 2, 3]")

    async def handler(call: Call) -> None:
        await call.send(plain(packed, extra="content-encoding: gzip\r\n"))

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        answer = await server.ask(b"", path="/v1/models", method="GET")
    assert (answer.body, answer.header("content-encoding")) == (packed, "gzip")


async def test_each_event_leaves_at_once() -> None:
    """The upstream sends the next one only when the caller has the one before."""
    seen = [asyncio.Event() for _ in range(3)]

    async def handler(call: Call) -> None:
        await call.send(EVENTS_HEAD + chunked(ROLE))
        for number, event in enumerate(seen):
            async with asyncio.timeout(3):
                await event.wait()
            await call.send(chunked(chunk(f"word{number}")))
        await call.send(chunked(chunk(finish="stop"), DONE) + LAST_CHUNK)

    async with upstream(handler) as engine, sidecar(engine.url) as server, server.connect() as (reader, _):
        async with asyncio.timeout(5):
            await reader.readuntil(b"assistant")
            for number, event in enumerate(seen):
                event.set()
                await reader.readuntil(f"word{number}".encode())
            assert (await reader.read()).endswith(b"[DONE]\n\n\r\n0\r\n\r\n")


@pytest.mark.parametrize("size", [1, 7, 4096])
async def test_an_answer_may_come_in_pieces_of_any_size(size: int) -> None:
    """A head that dribbles, too."""
    whole = EVENTS_HEAD + WORDS + LAST_CHUNK

    async def handler(call: Call) -> None:
        for start in range(0, len(whole), size):
            await call.send(whole[start : start + size])
            await asyncio.sleep(0)

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        answer = await server.ask()
    assert (answer.status, answer.events[-1], answer.complete) == (200, "[DONE]", True)


async def test_a_server_that_waits_for_leave_to_read_the_body_is_not_waited_for() -> None:
    """Expect: 100-continue is answered by the sidecar, and does not pass."""
    async with upstream(echo) as engine, sidecar(engine.url) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(
            b"POST /v1/files HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\nconnection: close\r\n\r\n"
        )
        async with asyncio.timeout(3):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            writer.write(b"abc")
            assert (await reader.read()).endswith(b"abc")
        writer.close()
    assert engine.call.field("expect") is None


@pytest.mark.parametrize("framing", ["content-length", "chunked"])
async def test_a_large_upload_streams_through(framing: str) -> None:
    """Of any route that is not judged: its first part is there before its last is sent, and memory stays flat."""
    part, parts = b"x" * MIB, 100
    begun = asyncio.Event()
    size = 0

    async def handler(call: Call) -> None:
        nonlocal size
        before = resident()
        while size < len(part) * parts and (data := await call.reader.read(256 * 1024)):
            size += len(data)
            begun.set()
            assert resident() - before < 40 * MIB
        await call.send(plain(b"thanks", extra="connection: close\r\n"))

    sized = b"content-length: %d\r\n\r\n" % (len(part) * parts)
    async with upstream(handler, with_body=False) as engine, sidecar(engine.url) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(UPLOAD + (sized if framing == "content-length" else b"transfer-encoding: chunked\r\n\r\n"))
        async with asyncio.timeout(30):
            for number in range(parts):
                writer.write(part if framing == "content-length" else chunked(part))
                await writer.drain()
                if number == 3:
                    await begun.wait()
            if framing == "chunked":
                writer.write(LAST_CHUNK)
            answer = await read_answer(reader)
        writer.close()
    assert answer.body == b"thanks"
    assert size >= len(part) * parts


async def test_an_upload_that_is_refused_early_gets_its_answer() -> None:
    """The upstream says 413 to the head and reads no more."""

    async def handler(call: Call) -> None:
        await call.send(
            plain(b'{"error": {"message": "too much", "code": 413}}', status=413, extra="connection: close\r\n")
        )
        await asyncio.sleep(1)

    async with upstream(handler, with_body=False) as engine, sidecar(engine.url) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(
            b"POST /v1/files HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999\r\nconnection: close\r\n\r\n" + b"x" * 999
        )
        async with asyncio.timeout(3):
            answer = await read_answer(reader)
        writer.close()
    assert (answer.status, answer.error["code"]) == (413, "request_too_large")


async def test_a_caller_that_does_not_read_stops_the_upstream() -> None:
    """Back-pressure reaches it, and memory stays flat; when the caller reads again, all of it comes."""
    event = chunk("x" * 8192)
    total = 60 * MIB // len(event)
    sent = 0

    async def handler(call: Call) -> None:
        nonlocal sent
        await call.send(EVENTS_HEAD)
        for _ in range(total):
            await call.send(chunked(event))
            sent += len(event)
        await call.send(chunked(chunk(finish="stop"), DONE) + LAST_CHUNK)

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        before = resident()
        async with server.connect() as (reader, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            last = -1
            while sent != last:  # until nobody takes any more
                last = sent
                await asyncio.sleep(0.3)
            assert 0 < sent < 30 * MIB
            assert resident() - before < 40 * MIB
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            got = 0
            async with asyncio.timeout(30):
                while data := await reader.read(MIB):
                    got += len(data)
                    tail = data[-20:]
        assert got > total * len(event)
        assert b"[DONE]" in tail


async def test_large_answers_pass_whole() -> None:
    body = bytes(range(256)) * 4 * 1024 * 8

    async def handler(call: Call) -> None:
        await call.send(plain(body, kind="application/octet-stream"))

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        answer = await server.ask(b"", path="/v1/files/1/content", method="GET")
    assert answer.body == body


async def test_what_the_middleware_leaves_alone_is_the_upstreams() -> None:
    """/metrics, /version and preflights, byte for byte; the sidecar's own metrics have a path of their own."""
    async with upstream(echo) as engine, sidecar(engine.url) as server:
        assert (await server.ask(b"", path="/metrics", method="GET")).body == b"nothing"
        assert b"lastword_requests_total" in (await server.ask(b"", path="/lastword/metrics", method="GET")).body
        await server.ask(b"", method="OPTIONS", headers={"access-control-request-method": "POST", "origin": "http://a"})
    assert [call.head.split()[1] for call in engine.calls] == [b"/metrics", b"/v1/chat/completions"]
    assert server.records == []


async def test_a_hundred_at_a_time_each_get_their_own() -> None:
    async def handler(call: Call) -> None:
        await asyncio.sleep(0.02)
        await echo(call)

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        asked = [server.ask(b"body %d" % number, path="/tokenize") for number in range(100)]
        answers = await asyncio.gather(*asked)
    assert [answer.body for answer in answers] == [b"body %d" % number for number in range(100)]
    assert engine.connections <= 100
