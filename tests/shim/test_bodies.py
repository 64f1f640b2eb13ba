"""Requests' bodies on their way in: in parts where nobody needs to look, whole where somebody must, and never twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from tests.shim.apps import JSON, Message, Receive, Scope, Send, read_body
from tests.shim.wire import Quiet, Server, read_answer, recording, serving

from lastword_shim import Settings, Shim

pytestmark = pytest.mark.anyio
TRANSCRIPTIONS = "/v1/audio/transcriptions"
MIB = 1024 * 1024
FORM = {"content-type": "multipart/form-data; boundary=x"}


class Counting:
    """Reads parts as they come, and says how many bytes there were; `parts` are their sizes."""

    def __init__(self) -> None:
        self.parts: list[int] = []
        self.first = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone = True
                return
            self.parts.append(len(message.get("body", b"")))
            self.first.set()
            await self.go_on.wait()
            more = message.get("more_body", False)
        await reply(send, {"size": sum(self.parts)})


async def reply(send: Send, answer: object) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": JSON})
    await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


def head(path: str, size: int | None, **headers: str) -> bytes:
    length = {"transfer-encoding": "chunked"} if size is None else {"content-length": str(size)}
    fields = {"host": "test", "connection": "close", **length, **headers}
    return (
        f"POST {path} HTTP/1.1\r\n".encode() + b"".join(f"{n}: {v}\r\n".encode() for n, v in fields.items()) + b"\r\n"
    )


@contextlib.asynccontextmanager
async def opened(server: Server) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A bare connection, closed on leaving, for which there are ten seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        async with asyncio.timeout(10):
            yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


async def upload(server: Server, path: str, parts: int, part: bytes) -> Any:
    async with opened(server) as (reader, writer):
        writer.write(head(path, parts * len(part), **FORM))
        for _ in range(parts):
            writer.write(part)
            await writer.drain()
        return await read_answer(reader)


@pytest.mark.parametrize("path", [TRANSCRIPTIONS, "/upload"])
async def test_an_upload_streams_through_in_flat_memory(path: str) -> None:
    """200 MB, and not one copy of it is held."""
    app = Counting()
    async with serving(app) as server:
        before = peak()
        answer = await upload(server, path, 200, b"x" * MIB)
        grown = peak() - before
    assert json.loads(answer.body) == {"size": 200 * MIB}
    assert len(app.parts) > 100
    assert grown < 40 * MIB, f"{grown / MIB:.0f} MiB"


async def test_the_application_has_the_first_part_before_the_last_is_sent() -> None:
    """And what it says early is heard early."""
    app = Counting()
    async with serving(app) as server, opened(server) as (reader, writer):
        writer.write(head(TRANSCRIPTIONS, 6, **FORM) + b"abc")
        await app.first.wait()
        writer.write(b"def")
        answer = await read_answer(reader)
    assert json.loads(answer.body) == {"size": 6}
    assert app.parts[0] == 3


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("path", [TRANSCRIPTIONS, "/upload", "/v1/chat/completions", "/v1/embeddings"])
async def test_a_body_over_the_limit_is_refused_in_the_middle(path: str, declared: bool) -> None:
    """413 as soon as it is known; the application learns that it is over."""
    app = Counting()
    async with serving(app, max_body_bytes=1000) as server, opened(server) as (reader, writer):
        if declared:
            writer.write(head(path, 5000, **FORM))
        else:
            writer.write(head(path, None, **FORM) + (b"190\r\n" + b"x" * 400 + b"\r\n") * 3)
        answer = await read_answer(reader)
        record = await server.one_record()
    assert (answer.status, answer.error["code"]) == (413, "request_too_large")
    assert (record["state"], record["http_status"]) == ("rejected", 413)
    assert app.gone
    assert sum(app.parts) <= 1000


async def test_a_client_that_leaves_in_the_middle_of_its_upload_is_gone() -> None:
    """The application sees a disconnect and no end."""
    app = Counting()
    async with serving(app) as server:
        async with opened(server) as (_, writer):
            writer.write(head(TRANSCRIPTIONS, 6, **FORM) + b"abc")
            await app.first.wait()
        record = await server.one_record()
    assert app.gone
    assert record["error_code"] == "client_disconnected"


async def test_an_upload_takes_no_place_before_it_is_whole() -> None:
    """A slow one keeps nobody out; its last part waits for the place."""
    slow = Counting()
    busy = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == TRANSCRIPTIONS:
            await slow(scope, receive, send)
        else:
            await read_body(receive)
            await busy.wait()
            await reply(send, {"data": []})

    async with serving(app, max_inflight=1, max_queued=5) as server, opened(server) as (reader, writer):
        writer.write(head(TRANSCRIPTIONS, 6, **FORM) + b"abc")
        await slow.first.wait()
        asking = asyncio.create_task(server.ask({"model": "e", "input": "x"}, path="/v1/embeddings"))
        places = server.shim._core.places  # type: ignore[union-attr]
        while not places.inside:
            await asyncio.sleep(0.005)
        writer.write(b"def")
        while not places.waiting:
            await asyncio.sleep(0.005)
        assert slow.parts == [3]
        busy.set()
        assert (await asking).status == 200
        assert json.loads((await read_answer(reader)).body) == {"size": 6}
        assert {record["endpoint"]: record["model"] for record in server.records} == {
            "/v1/embeddings": "e",
            TRANSCRIPTIONS: None,
        }


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def test_a_part_is_given_to_one_receiver_only_and_lost_by_none() -> None:
    """Who gives up waiting does not take it along; who waits beside another gets the next one."""
    seen: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        impatient = asyncio.ensure_future(receive())
        await asyncio.sleep(0)
        impatient.cancel()
        first, second = await asyncio.gather(receive(), receive())
        seen.extend(sorted([first["body"], second["body"]]))
        assert first["more_body"] != second["more_body"]
        await reply(send, {})

    async with serving(app) as server, opened(server) as (reader, writer):
        writer.write(head("/upload", 6) + b"abc")
        await asyncio.sleep(0.05)  # the server hands over what has come by then as one part
        writer.write(b"def")
        assert (await read_answer(reader)).status == 200
    assert seen == [b"abc", b"def"]


UPGRADE = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAEAAEAA"}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings", TRANSCRIPTIONS, "/tokenize"])
@pytest.mark.parametrize("promise", [(b"content-length", b"20"), (b"transfer-encoding", b"chunked")])
@pytest.mark.parametrize("wish", ["h2c", "foo", "TLS/1.0"])
async def test_a_body_lost_in_an_upgrade_is_told_with_the_remedy(
    path: str, promise: tuple[bytes, bytes], wish: str
) -> None:
    """As uvicorn with httptools hands it over: the head's promise and nothing of the body."""
    shim = Shim(Counting(), settings=Settings())
    sent: list[Message] = []
    records: list[dict[str, Any]] = []
    fields = [(name.encode(), value.encode()) for name, value in {**UPGRADE, "upgrade": wish}.items()]
    scope: Scope = {
        "type": "http", "method": "POST", "path": path, "query_string": b"", "root_path": "",
        "headers": [*fields, promise, (b"content-type", b"application/json")],
    }  # fmt: skip

    async def send(message: Message) -> None:
        sent.append(message)

    with recording(shim, records):
        await shim(scope, _nothing, send)
    error = json.loads(sent[1]["body"])["error"]
    assert (sent[0]["status"], error["code"], error["param"]) == (400, "invalid_request_error", "upgrade")
    assert "HTTP_1_1" in error["message"]


async def test_what_was_lost_in_an_upgrade_is_told_in_the_first_turn() -> None:
    """The body comes in a packet of its own, which uvicorn takes for a request that it refuses on the same connection."""
    sent: list[Message] = []
    scope: Scope = {
        "type": "http", "method": "POST", "path": "/v1/chat/completions", "query_string": b"", "root_path": "",
        "headers": [*((name.encode(), value.encode()) for name, value in UPGRADE.items()), (b"content-length", b"20")],
    }  # fmt: skip

    async def send(message: Message) -> None:
        sent.append(message)

    asked = asyncio.create_task(Shim(Counting(), settings=Settings())(scope, _nothing, send))
    await asyncio.sleep(0)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    await asked


async def test_an_upgrade_whose_body_arrives_is_no_fault() -> None:
    """h11 delivers it; and a body of nothing was promised as such."""
    for path in (TRANSCRIPTIONS, "/tokenize"):
        async with serving(Counting()) as server:
            answer = await server.ask(b"abc", path=path, headers={**UPGRADE, **FORM})
            assert json.loads(answer.body) == {"size": 3}
    async with serving(Counting()) as server:
        answer = await server.ask(b"", path="/tokenize", headers=UPGRADE)
        assert json.loads(answer.body) == {"size": 0}


async def test_a_real_server_loses_the_body_and_its_client_is_told() -> None:
    """uvicorn with httptools, which is what vLLM runs on."""
    shim = Shim(Counting(), settings=Settings())
    running = Quiet(
        uvicorn.Config(shim, port=0, http="httptools", lifespan="off", log_level="critical", access_log=False)
    )
    serve = asyncio.create_task(running.serve())
    while not running.started:
        await asyncio.sleep(0.005)
    port = running.servers[0].sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(5):
            writer.write(head("/v1/chat/completions", 2, **{**UPGRADE, "content-type": "application/json"}) + b"{}")
            answer = await read_answer(reader)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        running.should_exit = True
        await serve
    assert (answer.status, answer.error["param"]) == (400, "upgrade")
