"""Whatever the upstream does, a request gets one last word with the right code, and the log no traceback."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.shim.apps import ROLE, chunk
from tests.sidecar.wire import EVENTS_HEAD, WORDS, Call, Upstream, chunked, sidecar, upstream

pytestmark = pytest.mark.anyio
Fault = Callable[[Call], Awaitable[None]]
HALF = EVENTS_HEAD + chunked(ROLE, chunk("Hel"))


@pytest.fixture(autouse=True)
def _quiet_log(caplog: pytest.LogCaptureFixture) -> object:
    """Nothing that an upstream does is a fault of ours."""
    caplog.set_level(logging.INFO, "lastword_shim")
    yield
    records = caplog.get_records("call")
    assert records, "the log is looked at"
    for record in records:
        assert "Traceback" not in record.getMessage()
        assert not record.exc_info


def after(data: bytes, *, reset: bool = False) -> Fault:
    """Sends so much and closes the connection, or resets it."""

    async def handler(call: Call) -> None:
        if data:
            await call.send(data)
            await asyncio.sleep(0.02)
        if reset:
            call.reset()
        else:
            call.close()

    return handler


def half_closing(data: bytes) -> Fault:
    """Says that it will say no more, and stays."""

    async def handler(call: Call) -> None:
        await call.send(data)
        call.writer.write_eof()
        await call.gone()

    return handler


BEFORE = {
    "closes": after(b""),
    "resets": after(b"", reset=True),
    "half a head": after(b"HTTP/1.1 200 OK\r\ncontent-ty"),
    "half-closes": half_closing(b""),
    "no HTTP": after(b"\x15\x03\x01\x00\x02\x02\x46"),
    "a greeting": after(b"220 mail.example ESMTP\r\n\r\n"),
    "two lengths": after(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
    "an endless head": after(b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 20000),
    "endless 1xx": after(b"HTTP/1.1 102 Processing\r\n\r\n" * 100),
    "a control character": after(b"HTTP/1.1 200 OK\r\nx-a: a\x01b\r\ncontent-length: 2\r\n\r\n{}"),
    "such a type": after(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\x0b\r\ncontent-length: 2\r\n\r\n{}"),
    "no status": after(b"HTTP/1.1 600 Odd\r\ncontent-length: 2\r\n\r\n{}"),
    "switches": after(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
}
DURING = {
    "cut": after(HALF),
    "reset": after(HALF, reset=True),
    "half-closed": half_closing(HALF),
    "cut in a chunk": after(HALF + b"fff\r\ndata: {"),
    "no chunk": after(HALF + b"data: oops\r\n"),
    "too long a chunk": after(HALF + b"3\r\nabcdef\r\n"),
    "short": after(HALF.replace(b"transfer-encoding: chunked", b"content-length: 9999")),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", BEFORE)
async def test_before_an_answer(name: str, stream: bool) -> None:
    """A status and a code: 502, bad_gateway, for the upstream is still there."""
    async with upstream(BEFORE[name]) as engine, sidecar(engine.url) as server:
        answer = await server.ask({"model": "m", "stream": stream}, timeout=3)
        record = await server.one_record()
    assert (answer.status, answer.error["code"], answer.complete) == (502, "bad_gateway", True)
    assert (record["outcome"], record["error_code"], record["origin"]) == ("failed", "bad_gateway", "engine")
    assert len(engine.calls) == 1, "nothing is sent twice"


async def test_an_upstream_that_closes_whatever_is_idle_is_still_there() -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.02)
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as engine:
        port = engine.sockets[0].getsockname()[1]
        async with sidecar(f"http://127.0.0.1:{port}") as server:
            answer = await server.ask({"model": "m"}, timeout=3)
    assert (answer.status, answer.error["code"]) == (502, "bad_gateway")


@pytest.mark.parametrize("name", DURING)
async def test_in_a_stream(name: str) -> None:
    """What came has left, then the one error event."""
    async with upstream(DURING[name]) as engine, sidecar(engine.url) as server:
        answer = await server.ask({"model": "m", "stream": True}, timeout=3)
        record = await server.one_record()
    assert (answer.status, answer.complete) == (200, True)
    assert b"Hel" in answer.body
    assert answer.event_error["code"] == "bad_gateway"
    assert (record["state"], record["http_status"], record["error_code"]) == ("failed", 200, "bad_gateway")


@pytest.mark.parametrize(
    "body",
    [
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"id\":",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{\"i\r\n",
    ],
)  # fmt: skip
async def test_in_a_whole_answer(body: bytes) -> None:
    """Nothing of it has left, so that the status can still tell."""
    async with upstream(after(body)) as engine, sidecar(engine.url) as server:
        answer = await server.ask({"model": "m"}, timeout=3)
        record = await server.one_record()
    assert (answer.status, answer.error["code"]) == (502, "bad_gateway")
    assert (record["state"], record["completion_tokens"]) == ("failed", None)


async def test_an_answer_without_a_length_that_is_cut() -> None:
    """Nothing on the wire tells; the words do."""
    head = EVENTS_HEAD.replace(b"transfer-encoding: chunked\r\n", b"")
    async with upstream(after(head + ROLE + chunk("Hel"))) as engine, sidecar(engine.url) as server:
        answer = await server.ask({"model": "m", "stream": True}, timeout=3)
    assert answer.event_error["code"] == "generation_aborted"


async def test_half_a_body_of_another_route_is_left_without_its_end() -> None:
    """There is no place for an error in it: the connection tells."""
    half = b"HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"
    async with upstream(after(half)) as engine, sidecar(engine.url) as server:
        answer = await server.ask(b"", path="/v1/files/1/content", method="GET", timeout=3)
        record = await server.one_record()
    assert (answer.body, answer.complete) == (b"abc", False)
    assert (record["outcome"], record["error_code"]) == ("failed", "bad_gateway")


@pytest.mark.parametrize(
    ("steps", "settings", "code"),
    [
        (b"", {"first_token_timeout": 0.4}, "first_token_timeout"),
        (EVENTS_HEAD, {"first_token_timeout": 0.4}, "first_token_timeout"),
        (HALF, {"idle_timeout": 0.3}, "generation_stalled"),
        (HALF, {"total_timeout": 0.4}, "generation_timeout"),
    ],
)
async def test_silence_is_ended_by_the_timers(steps: bytes, settings: dict[str, Any], code: str) -> None:
    """And the upstream's connection is closed, so that it may stop."""
    calls: list[Call] = []

    async def handler(call: Call) -> None:
        calls.append(call)
        await call.send(steps)
        await call.gone()

    async with upstream(handler) as engine, sidecar(engine.url, hold=0.1, **settings) as server:
        answer = await server.ask({"model": "m", "stream": True}, timeout=3)
        error = answer.error if answer.status != 200 else answer.event_error
        async with asyncio.timeout(2):
            await engine.ended.wait()
    assert error["code"] == code
    assert calls[0].closed_at is not None


async def nobody() -> Upstream:
    async with upstream(after(b"")) as gone:
        return gone


@pytest.mark.parametrize("stream", [True, False])
async def test_nobody_listens(stream: bool) -> None:
    """503: nothing was sent, and another instance may serve it."""
    gone = await nobody()
    async with sidecar(gone.url) as server:
        answer = await server.ask({"model": "m", "stream": stream}, timeout=3)
        record = await server.one_record()
        health = await server.ask(b"", path="/health", method="GET", timeout=3)
    assert (answer.status, answer.error["code"]) == (503, "engine_unavailable")
    assert str(gone.port) not in answer.body.decode()
    assert record["state"] == "rejected"
    assert health.status == 503


async def test_a_host_that_does_not_answer_costs_the_time_to_connect() -> None:
    """A listener whose queue is full takes no connection."""
    with contextlib.ExitStack() as sockets:
        full = sockets.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(8):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        began = time.monotonic()
        service = {"connect_timeout": 0.3}
        async with sidecar(f"http://127.0.0.1:{full.getsockname()[1]}", service=service) as server:
            answer = await server.ask({"model": "m"}, timeout=3)
    assert (answer.status, answer.error["code"]) == (503, "engine_unavailable")
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("name", BEFORE)
async def test_what_is_left_alone_gets_an_answer_of_its_own(name: str) -> None:
    """No exchange of the middleware is there to tell of it."""
    async with upstream(BEFORE[name]) as engine, sidecar(engine.url) as server:
        answer = await server.ask(b"", path="/metrics", method="GET", timeout=3)
    assert (answer.status, len(engine.calls)) == (502, 1)
    assert b'"bad_gateway"' in answer.body


async def test_a_request_that_cannot_be_sent_is_the_callers_fault() -> None:
    """A body that is longer than announced never comes; what HTTP/1.1 forbids in a field does not pass."""
    async with upstream(after(b"")) as engine, sidecar(engine.url) as server:
        answer = await server.ask({"model": "m"}, headers={"x-odd": "a\x7fb"}, timeout=3)
    assert answer.status == 400
    assert engine.calls == []


async def test_a_whole_stream_is_whole() -> None:
    """The counterpart: none of the above is raised against an answer that is as it should be."""

    async def handler(call: Call) -> None:
        await call.send(EVENTS_HEAD + WORDS + b"0\r\n\r\n")

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        answer = await server.ask({"model": "m", "stream": True})
        record = await server.one_record()
    assert answer.events[-1] == "[DONE]"
    assert record["outcome"] == "completed"


async def test_a_whole_stream_that_is_cut_after_its_last_word_is_whole() -> None:
    """The log says so in a line, if at all."""
    async with upstream(after(EVENTS_HEAD + WORDS)) as engine, sidecar(engine.url) as server:
        answer = await server.ask({"model": "m", "stream": True})
        record = await server.one_record()
    assert answer.events[-1] == "[DONE]"
    assert (answer.complete, record["outcome"]) == (True, "completed")
