"""What leaves of a stream: fine events as they came, and exactly one terminal, `[DONE]` only after success."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.shim.apps import CHAT, COMPLETIONS, DONE, ERROR, ROLE, App, Receive, Scope, Send, chunk, read_body, streaming
from tests.shim.wire import serving

pytestmark = pytest.mark.anyio
GOOD = ROLE + chunk("Hel") + chunk("lo", finish="stop") + DONE
ABORT = chunk(finish="abort")


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
async def test_a_good_stream_leaves_byte_for_byte(size: int, newline: str) -> None:
    """However it is cut, and whatever ends its lines; comments, ids and usage chunks too."""
    body = (
        b": keep-alive\n\nid: 7\nretry: 3000\n"
        + ROLE
        + b"\n\n"
        + GOOD[: -len(DONE)]
        + b'data: {"choices": [], "usage": {"prompt_tokens": 3}}\n\n'
        + DONE
    )
    body = body.replace(b"\n", newline.encode())
    async with serving(streaming(*(body[at : at + size] for at in range(0, len(body), size)))) as server:
        answer = await server.ask()
        assert (answer.status, answer.complete) == (200, True)
        # A CR may be the first half of a CRLF, so the last line end of all may stay behind with it.
        assert answer.body.rstrip(b"\r\n") == body.rstrip(b"\r\n")
        record = await server.one_record()
    assert (record["outcome"], record["finish_reasons"], record["prompt_tokens"]) == ("completed", ["stop"], 3)


FLAT = b'data: {"object":"error","message":"x","code":503,"type":"y"}\n\n'
DEAD = b'data: {"error":{"message":"EngineCore encountered an issue. See","type":"InternalServerError","code":500}}\n\n'
ENDINGS: dict[str, tuple[list[Any], str]] = {
    "done without finish_reason": ([chunk("Hel"), DONE], "generation_aborted"),
    "body ends without finish_reason": ([chunk("Hel")], "generation_aborted"),
    "finish_reason but no done": ([chunk("Hel", finish="stop")], "generation_aborted"),
    "half an event": ([chunk("Hel"), b'data: {"choices": [{"ind'], "generation_aborted"),
    "abort, then done": ([chunk("Hel"), ABORT, DONE], "generation_aborted"),
    "abort with text, then done": ([chunk("Hel"), chunk("p", finish="abort"), DONE], "generation_aborted"),
    "finish_reason error": ([chunk("Hel"), chunk(finish="error"), DONE], "internal_server_error"),
    "error event, then done": ([chunk("Hel"), ERROR, DONE], "invalid_request_error"),
    "two error events": ([chunk("Hel"), ERROR, ERROR], "invalid_request_error"),
    "flat error": ([chunk("Hel"), FLAT, DONE], "engine_unavailable"),
    "named error event": ([chunk("Hel"), b"event: error\ndata: boom\n\n", DONE], "internal_server_error"),
    "engine dead": (
        [chunk("Hel"), DEAD, DONE],
        "engine_unavailable",
    ),
    "no JSON": ([chunk("Hel"), b"data: {oops\n\n", DONE], "internal_server_error"),
    "exception": ([chunk("Hel"), RuntimeError("CUDA error at 0x7f00")], "internal_server_error"),
    "unknown finish_reason": ([chunk("Hel", finish="tired"), DONE], "unknown_finish_reason"),
    "second choice unfinished": ([chunk("Hel", finish="stop"), chunk("x", index=1), DONE], "generation_aborted"),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "code"), ENDINGS.values(), ids=ENDINGS)
async def test_a_bad_ending_becomes_one_error_event_and_no_done(steps: list[Any], code: str) -> None:
    """Late ones: content has left already, so the error is the stream's last event and the status stays 200."""
    async with serving(streaming(*steps)) as server:
        answer = await server.ask()
        record = await server.one_record()
    assert (answer.status, answer.complete) == (200, True)
    assert answer.event_error["code"] == code
    assert "CUDA" not in answer.body.decode()
    assert (record["error_code"], record["http_status"]) == (code, 200)


EARLY: dict[str, tuple[list[Any], int, str]] = {
    "error event first": ([ERROR, DONE], 400, "invalid_request_error"),
    "only done": ([DONE], 503, "generation_aborted"),
    "abort first": ([ABORT, DONE], 503, "generation_aborted"),
    "empty body": ([], 503, "generation_aborted"),
    "exception first": ([RuntimeError("no")], 500, "internal_server_error"),
    "template error": ([type("TemplateError", (Exception,), {})("no")], 500, "internal_server_error"),
}


@pytest.mark.parametrize(("steps", "status", "code"), EARLY.values(), ids=EARLY)
async def test_an_early_error_has_its_true_status(steps: list[Any], status: int, code: str) -> None:
    """The start of the response is held until the first event says what it is."""
    async with serving(streaming(*steps)) as server:
        answer = await server.ask()
        record = await server.one_record()
    assert (answer.status, answer.error["code"]) == (status, code)
    assert (record["error_code"], record["http_status"]) == (code, status)


async def test_nothing_follows_the_first_done() -> None:
    """Chunks, a second terminal and an error after `[DONE]` are dropped."""
    async with serving(streaming(GOOD + chunk("more") + DONE, ERROR, DONE)) as server:
        answer = await server.ask()
    assert answer.body == GOOD


async def test_the_hold_ends_and_then_errors_are_events() -> None:
    """After LASTWORD_HOLD seconds the client gets its headers, before any event."""
    async with serving(streaming(0.4, ERROR, DONE), hold=0.1) as server, server.connect() as (reader, _):
        async with asyncio.timeout(0.3):
            head = await reader.readuntil(b"\r\n\r\n")
        rest = await reader.read()
    assert head.startswith(b"HTTP/1.1 200")
    assert b'"code": "invalid_request_error"' in rest
    assert b"[DONE]" not in rest


async def test_a_comment_ends_the_hold() -> None:
    """A keep-alive is there to keep somebody waiting, so it must reach them."""
    async with serving(streaming(b": keep-alive\n\n", 0.3, GOOD), hold=60) as server, server.connect() as (reader, _):
        async with asyncio.timeout(0.25):
            seen = await reader.readuntil(b": keep-alive\n\n")
        assert seen.startswith(b"HTTP/1.1 200")
        await reader.read()


@pytest.mark.parametrize(
    ("body", "steps", "completes"),
    [
        ({"n": 2}, [chunk("a", finish="stop"), DONE], False),
        ({"n": 2}, [chunk("a", finish="stop"), chunk("b", finish="length", index=1), DONE], True),
        ({"prompt": ["x", "y"]}, [chunk("a", finish="stop"), DONE], False),
        ({"prompt": [[1, 2], [3]], "n": 2}, [chunk(finish="stop", index=index) for index in range(4)] + [DONE], True),
        ({"prompt": [1, 2, 3]}, [chunk("a", finish="stop"), DONE], True),
    ],
)
async def test_every_expected_choice_must_have_finished(
    body: dict[str, Any], steps: list[bytes], completes: bool
) -> None:
    """`n` times the prompts of the request, not what happened to arrive."""
    async with serving(streaming(*steps)) as server:
        answer = await server.ask({"stream": True, **body}, path=COMPLETIONS)
    assert ("[DONE]" in answer.events) is completes
    if not completes:
        assert answer.event_error["code"] == "generation_aborted"


async def test_an_answer_that_stops_silently_is_counted() -> None:
    """`stream_without_done` counts endings without an honest terminal, and no others."""
    for steps, silent in (
        [[chunk("a"), DONE], 1],
        [[GOOD], 0],
        [[chunk("a"), ERROR, DONE], 0],
        [[chunk("a"), ABORT, DONE], 1],
    ):
        async with serving(streaming(*steps)) as server:  # type: ignore[misc]
            counter = server.shim._core.metrics.without_done  # type: ignore[union-attr]
            before = counter._value.get()
            await server.ask()
            await server.one_record()
            assert counter._value.get() - before == silent, steps


async def test_an_event_beyond_the_limit_ends_the_stream() -> None:
    """Memory has an end."""
    endless = [b"x" * (1024 * 1024)] * 17
    for steps in ([b"data: " + b"".join(endless) + b"\n\n", DONE], [b"data: ", *endless, 30]):
        async with serving(streaming(chunk("a"), *steps)) as server:
            answer = await server.ask(timeout=20)
        assert answer.event_error["code"] == "internal_server_error"


def misbehaving(*messages: dict[str, Any]) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        for message in messages:
            await send(message)

    return app


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"type": "http.response.body", "body": b"x"}],
        [{"type": "http.response.start", "status": 200, "headers": []}],
        [{"type": "http.response.start", "status": 200, "headers": []}] * 2,
        [{"type": "http.response.start", "status": 500, "headers": []}],
        [{"type": "http.response.trailers", "headers": []}],
    ],
)
async def test_an_application_that_breaks_asgi_still_gets_one_answer(messages: list[dict[str, Any]]) -> None:
    """No start, two starts, a body before its start, or no end."""
    async with serving(misbehaving(*messages)) as server:
        answer = await server.ask({"model": "m"}, path=CHAT)
        await server.one_record()
    assert answer.error["code"] == "internal_server_error"
