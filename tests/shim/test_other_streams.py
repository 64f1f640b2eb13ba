"""Streams that nobody judges: what is no error leaves as it came, and an error is the end; and all that a judged one may hold."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.shim.apps import CHAT, COMPLETIONS, DONE, ERROR, EVENTS, ROLE, answering, chunk, streaming
from tests.shim.inprocess import answered

pytestmark = pytest.mark.anyio
ROUTES = ["/v1/audio/transcriptions", "/inference/v1/generate", "/cohere/v2/chat", "/v1/models/sse", "/anything"]
BEGUN = b'data: {"object":"transcription.chunk","choices":[{"delta":{"content":"a"}}]}\n\n: keep-alive\n\n'


@pytest.mark.parametrize("path", ROUTES)
async def test_an_error_event_is_made_ours_and_is_the_end(path: str) -> None:
    """vLLM sends [DONE] after it."""
    answer, record = await answered(streaming(BEGUN, ERROR, DONE, BEGUN), path=path)
    assert answer.body.startswith(BEGUN)
    assert answer.event_error["code"] == "invalid_request_error"
    assert (record["outcome"], record["error_code"]) == ("failed", "invalid_request_error")


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("half", [b"", b'data: {"half":'])
async def test_an_exception_and_a_cut_end_with_an_error_event(path: str, half: bytes) -> None:
    """Half an event that came before it does not leave."""

    async def cut(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await send({"type": "http.response.body", "body": BEGUN + half, "more_body": True})

    for app in (streaming(BEGUN + half, RuntimeError("/root/x")), cut):
        answer, _ = await answered(app, path=path)
        assert answer.body.startswith(BEGUN)
        assert half == b"" or half not in answer.body
        assert answer.event_error["code"] == "internal_server_error"
        assert b"/root" not in answer.body


@pytest.mark.parametrize("path", ROUTES)
async def test_an_error_of_one_call_among_several_is_no_end(path: str) -> None:
    """JSON-RPC answers each call by itself, and quotes are no errors."""
    sent = b'data: {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}\n\n'
    sent += b'data: {"text": "they said \\"error\\": 1"}\n\ndata: {"error": null, "x": 1}\n\nevent: a\ndata: plain "error"\n\n'
    answer, record = await answered(streaming(sent, BEGUN), path=path)
    assert answer.body == sent + BEGUN
    assert record["outcome"] == "completed"


async def test_a_compressed_stream_is_passed_on_and_gets_no_event_that_nobody_could_read() -> None:
    """Its end is missing instead, which tells."""
    fields = [*EVENTS, (b"content-encoding", b"gzip")]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": b"\x1f\x8bxyz", "more_body": True})
        raise RuntimeError("no")

    answer, _ = await answered(app, hold=0, path="/anything")
    assert (answer.body, answer.complete) == (b"\x1f\x8bxyz", False)


def tool(arguments: str, **more: object) -> bytes:
    call = {"index": 0, "function": {"arguments": arguments}, **more}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
    return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"


USAGE = b'data: {"id":"c","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n'
PASSED: dict[str, tuple[dict[str, Any], bytes]] = {
    "two choices, the second first": (
        {"n": 2},
        chunk("b", index=1) + ROLE + chunk("a") + chunk(finish="stop", index=1) + chunk(finish="length") + USAGE + DONE,
    ),
    "two prompts, twice each": (
        {"prompt": ["x", "y"], "n": 2},
        b"".join(chunk("a", finish="stop", index=index) for index in (3, 1, 0, 2)) + DONE,
    ),
    "tool calls": (
        {},
        ROLE + tool("", id="t") + tool('{"a"') + tool(": 1}") + chunk(finish="tool_calls") + USAGE + DONE,
    ),
    "usage on each chunk": (
        {},
        chunk("a", usage={"completion_tokens": 1}) + chunk("b", finish="stop", usage={"completion_tokens": 2}) + DONE,
    ),
    "signs of life": (
        {},
        b": keep-alive\n\n" + ROLE + b": keep-alive\n\n" + chunk("a", finish="stop") + b":\n\n" + DONE,
    ),
    "pings and status objects": (
        {},
        b'event: ping\ndata: {"type": "ping"}\n\n' + chunk("a", finish="stop") + b'data: {"status": "x"}\n\n' + DONE,
    ),
    "reasoning": ({}, chunk("", finish=None) + chunk("a", finish="stop") + DONE),
    "repetition": ({}, chunk("a", finish="repetition") + DONE),
}


@pytest.mark.parametrize("name", PASSED)
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_what_a_judged_stream_may_hold_leaves_byte_for_byte(name: str, path: str) -> None:
    """Whatever engines put between the first chunk and `[DONE]`."""
    asked, sent = PASSED[name]
    for parts in ([sent], [sent[at : at + 11] for at in range(0, len(sent), 11)]):
        answer, record = await answered(streaming(*parts), {"stream": True, **asked}, path=path)
        assert answer.body == sent
        assert record["outcome"] == "completed"


async def test_beams_come_as_a_whole_answer() -> None:
    """As many as were asked for, or it is none."""
    beams = [{"index": index, "text": "a", "finish_reason": "length"} for index in range(3)]
    for n, status in ((3, 200), (4, 503)):
        body = {"n": n, "use_beam_search": True, "prompt": "x"}
        answer, _ = await answered(answering({"choices": beams}), body, path=COMPLETIONS)
        assert answer.status == status


async def test_signs_of_life_are_no_tokens() -> None:
    """A client is kept waiting by them, and the timer is not."""

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await send({"type": "http.response.body", "body": ROLE + chunk("a"), "more_body": True})
        while True:
            await send({"type": "http.response.body", "body": b": keep-alive\n\n", "more_body": True})
            await asyncio.sleep(0.02)

    answer, _ = await answered(endless, idle_timeout=0.2)
    assert answer.event_error["code"] == "generation_stalled"
    assert answer.body.count(b": keep-alive") > 3


@pytest.mark.parametrize(
    ("path", "failure"),
    [
        ("/v1/messages", b'event: error\ndata: {"type":"error","error":{"type":"internal_error","message":"%s"}}\n\n'),
        ("/v1/messages", b'data: {"type": "error", "error": {"type": "internal_error", "message": "%s"}}\n\n'),
        ("/v1/responses", b"event: error\ndata: %s\n\n"),
        (
            "/v1/responses",
            b'event: response.failed\ndata: {"type":"response.failed","response":{"error":{"message":"%s"}}}\n\n',
        ),
    ],
)
async def test_an_error_event_of_another_protocol_is_no_success_and_tells_nothing(path: str, failure: bytes) -> None:
    """Named or not, as an object or as text."""
    begun = b'event: ping\ndata: {"type":"ping"}\n\n'
    app = streaming(begun + failure % b"cannot open /root/models/x.bin", begun)
    answer, record = await answered(app, path=path, hold=0)
    assert answer.complete
    assert answer.body.startswith(begun)
    assert answer.body.count(b"ping") == 2
    assert b'"code": "internal_server_error"' in answer.body
    assert b"/root" not in answer.body
    assert (record["outcome"], record["error_code"]) == ("failed", "internal_server_error")


@pytest.mark.parametrize("path", ["/v1/audio/transcriptions", "/v1/messages/count_tokens", "/anything"])
async def test_a_stream_that_is_not_judged_leaves_byte_for_byte(path: str) -> None:
    """However it is cut, and with half an event at its end."""
    sent = b'event: a\ndata: {"type":"a","delta":"an error: {\\"error\\": 1}"}\n\n: comment\n\ndata: {"error"'
    for size in (1, 7, len(sent)):
        parts = [sent[at : at + size] for at in range(0, len(sent), size)]
        answer, record = await answered(streaming(*parts), path=path)
        assert answer.body == sent
        assert record["outcome"] == "completed"
