"""What HTTP has besides: it behaves as it does without the shim."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from tests.shim.apps import DONE, answering, chunk, streaming
from tests.shim.wire import Quiet, Server, serving

pytestmark = pytest.mark.anyio
GOOD = chunk("a", finish="stop") + DONE
TEXT = "word " * 1000


async def page(request: Request) -> Response:
    return PlainTextResponse(TEXT, headers={"etag": '"x"'})


async def empty(request: Request) -> Response:
    return Response(status_code=int(request.path_params["status"]))


async def echo(request: Request) -> Response:
    return JSONResponse({"read": len(await request.body())})


async def missing(request: Request) -> Response:
    return PlainTextResponse(TEXT, status_code=404)


async def dripping(request: Request) -> Response:
    async def drips() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"drip "

    return StreamingResponse(drips(), media_type="text/plain")


@pytest.fixture
def application(tmp_path: Any) -> Starlette:
    (tmp_path / "file.txt").write_text(TEXT)

    async def file(request: Request) -> Response:
        return FileResponse(tmp_path / "file.txt")

    routes = [
        Route("/page", page),
        Route("/empty/{status}", empty, methods=["GET", "DELETE"]),
        Route("/echo", echo, methods=["POST"]),
        Route("/missing", missing),
        Route("/file", file),
        Route("/drip", dripping),
    ]
    app = Starlette(routes=routes)
    app.add_middleware(GZipMiddleware)
    return app


@contextlib.asynccontextmanager
async def bare(app: Any) -> AsyncIterator[int]:
    """The application without the shim, and its port."""
    server = Quiet(uvicorn.Config(app, port=0, http="h11", lifespan="off", log_level="error", access_log=False))
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await running


async def exchange(port: int, sent: bytes) -> bytes:
    """All that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(10):
            writer.write(sent)
            return await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def stripped(answer: bytes) -> list[bytes]:
    """Without what differs by nature: the shim's request id, and the time."""
    ours = (b"x-request-id:", b"date:", b"last-modified:")
    return [line for line in answer.split(b"\r\n") if not line.lower().startswith(ours)]


def asking(line: str, *headers: str, body: bytes = b"", close: bool = True) -> bytes:
    fields = ["host: test", *headers, *(["connection: close"] if close else [])]
    return "\r\n".join([line, *fields, "", ""]).encode() + body


REQUESTS = {
    "page": asking("GET /page HTTP/1.1"),
    "HEAD": asking("HEAD /page HTTP/1.1"),
    "HTTP/1.0": asking("GET /page HTTP/1.0"),
    "HTTP/1.0, a stream": asking("GET /drip HTTP/1.0"),
    "a stream": asking("GET /drip HTTP/1.1"),
    "gzip": asking("GET /page HTTP/1.1", "accept-encoding: gzip"),
    "204": asking("DELETE /empty/204 HTTP/1.1"),
    "304": asking("GET /empty/304 HTTP/1.1", 'if-none-match: "x"'),
    "a range": asking("GET /file HTTP/1.1", "range: bytes=5-9"),
    "ranges": asking("GET /file HTTP/1.1", "range: bytes=0-4"),
    "a whole file": asking("GET /file HTTP/1.1"),
    "100-continue": asking("POST /echo HTTP/1.1", "content-length: 3", "expect: 100-continue", body=b"abc"),
    "chunks and trailers": asking(
        "POST /echo HTTP/1.1", "transfer-encoding: chunked", "trailer: x-sum", body=b"3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n"
    ),
    "pipelining": asking("GET /page HTTP/1.1", close=False)
    + asking("POST /echo HTTP/1.1", "content-length: 3", close=False, body=b"abc")
    + asking("GET /page HTTP/1.1"),
    "no HTTP": b"\x16\x03\x01\x00hello\r\n\r\n",
    "preflight": asking("OPTIONS /page HTTP/1.1", "origin: http://x", "access-control-request-method: GET"),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_an_answer_is_what_it_is_without_the_shim(application: Starlette, name: str) -> None:
    """Byte for byte, but for the request id and dates."""
    async with bare(application) as port, serving(application) as server:
        without, with_it = await exchange(port, REQUESTS[name]), await exchange(server.port, REQUESTS[name])
    if name == "preflight":  # an error status, which is left to the application there
        assert b"405" in with_it.split(b"\r\n")[0]
    assert stripped(with_it) == stripped(without)


async def test_an_error_to_a_head_request_has_no_body(application: Starlette) -> None:
    """Its length is that of the body which a GET would have got."""
    async with serving(application) as server:
        answer = await exchange(server.port, asking("HEAD /missing HTTP/1.1"))
        whole = await server.ask(b"", path="/missing", method="GET", headers={"content-length": ""})
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404")
    assert body == b""
    assert whole.error["code"] == "not_found"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
async def test_a_compressed_error_is_read_all_the_same(encoding: str) -> None:
    """What cannot be read is told by its status; what leaves is not compressed."""
    said = json.dumps({"error": {"message": "no such adapter", "code": "model_not_found"}}).encode()
    body = {"gzip": gzip.compress(said), "deflate": zlib.compress(said), "br": b"\x0b\x02\x80"}[encoding]
    fields = [(b"content-type", b"application/json"), (b"content-encoding", encoding.encode())]
    async with serving(answering(body, status=404, headers=fields)) as server:
        answer = await server.ask(b"", path="/v1/models/x", method="GET", headers={"content-length": ""})
    assert answer.header("content-encoding") is None
    assert answer.error["code"] == ("not_found" if encoding == "br" else "model_not_found")


async def test_a_compressed_bomb_is_read_up_to_a_limit() -> None:
    """A megabyte tells enough."""
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    fields = [(b"content-encoding", b"gzip")]
    async with serving(answering(bomb, status=500, headers=fields)) as server:
        assert (await server.ask({"model": "m"})).error["code"] == "internal_server_error"


async def test_expect_100_continue_is_answered_when_the_application_wants_the_body() -> None:
    """Neither earlier, which would invite a body that is refused, nor never."""

    async def refused(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/v1/completions":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
        else:
            await streaming(GOOD)(scope, receive, send)

    sent = asking(
        "POST /v1/chat/completions HTTP/1.1", "content-length: 17", "expect: 100-continue", "content-type: text/plain"
    )
    async with serving(refused) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        async with asyncio.timeout(5):
            writer.write(sent)
            assert b"100" in await reader.readuntil(b"\r\n\r\n")
            writer.write(b'{"stream": true} ')
            assert (await reader.read()).count(b"data: [DONE]") == 1
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        answer = await exchange(server.port, sent.replace(b"/v1/chat/completions", b"/v1/completions"))
    assert answer.startswith(b"HTTP/1.1 401")


async def test_pipelined_generations_are_answered_in_their_order() -> None:
    """Each with its own id and its own end."""
    body = b'{"model": "m", "stream": true}'
    fields = (f"content-length: {len(body)}", "content-type: application/json")
    sent = b"".join(
        asking("POST /v1/chat/completions HTTP/1.1", *fields, f"x-request-id: r{n}", body=body, close=n == 2)
        for n in range(3)
    )
    async with serving(streaming(GOOD)) as server:
        answer = await exchange(server.port, sent)
        await server.one_record(3)
    assert answer.count(b"data: [DONE]") == 3
    ids = [line for line in answer.split(b"\r\n") if line.startswith(b"x-request-id")]
    assert ids == [b"x-request-id: r0", b"x-request-id: r1", b"x-request-id: r2"]


@pytest.mark.parametrize(
    ("steps", "whole"), [([chunk("a"), RuntimeError("no")], False), ([chunk("a")], False), ([GOOD], True)]
)
async def test_an_http_1_0_client_is_told_the_end_too(steps: list[Any], whole: bool) -> None:
    """It has no chunks, so that a cut and an end look alike to it; the event tells."""
    body = b'{"model": "m", "stream": true}'
    fields = (f"content-length: {len(body)}", "content-type: application/json")
    async with serving(streaming(*steps)) as server:
        answer = await exchange(server.port, asking("POST /v1/chat/completions HTTP/1.0", *fields, body=body))
    assert (b"[DONE]" in answer, b'"error"' in answer) == (whole, not whole)


async def test_a_websocket_is_left_alone() -> None:
    """vLLM's /v1/realtime; the scope reaches the application as it came."""
    seen: list[Any] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope, receive, send))

    async with serving(inner) as server:
        scope, marks = {"type": "websocket", "path": "/v1/realtime", "headers": []}, [object(), object()]
        await server.shim(scope, *marks)  # type: ignore[arg-type]
    assert seen == [(scope, *marks)]
    assert seen[0][0] is scope


async def _ask(server: Server, path: str, method: str) -> bytes:
    return await exchange(server.port, asking(f"{method} {path} HTTP/1.1"))


@pytest.mark.parametrize("path", ["/health", "/ping", "/metrics", "/version", "/load", "/docs", "/openapi.json"])
async def test_probes_and_pages_are_passed_on_untouched(path: str) -> None:
    """No id, no record, whatever they answer."""
    async with serving(
        answering(b"not an error of ours", status=503, headers=[(b"content-type", b"text/plain")])
    ) as server:
        answer = await _ask(server, path, "GET")
        assert answer.endswith(b"not an error of ours")
        assert b"x-request-id" not in answer
        assert server.records == []
