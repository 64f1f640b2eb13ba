"""The Messages endpoint (Anthropic's protocol): `message_stop` means success and nothing else, errors in its envelope."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.shim.apps import App, answering, streaming
from tests.shim.events import (
    BLOCK,
    BLOCK_STOP,
    MESSAGE,
    MESSAGE_START,
    MESSAGE_STOP,
    MESSAGES,
    engine_says,
    last_word,
    message_delta,
    named,
)
from tests.shim.inprocess import answered
from tests.shim.wire import Answer, conforms, serving

from lastword._codes import CODES, Code

pytestmark = pytest.mark.anyio
BEGUN = MESSAGE_START + BLOCK
END = BLOCK_STOP + message_delta("end_turn") + MESSAGE_STOP
GOOD = BEGUN + END
PING = named("ping")


def answer_of(stop_reason: str | None, **members: object) -> dict[str, Any]:
    text = {"type": "text", "text": "Hello"}
    reason = {} if stop_reason is None else {"stop_reason": stop_reason}  # vLLM leaves a null one out
    whole = {name: value for name, value in MESSAGE.items() if name != "stop_reason"}
    return {**whole, "content": [text], "usage": {"input_tokens": 3, "output_tokens": 2}, **reason, **members}


def envelope(answer: Answer) -> dict[str, Any]:
    """The error of an HTTP answer, as ours, as OpenAI's and as Anthropic's clients read it."""
    error = answer.error
    parsed = json.loads(answer.body)
    assert (parsed["type"], parsed["request_id"]) == ("error", error["request_id"])
    assert answer.header("request-id") == answer.header("x-request-id") == error["request_id"]
    return error


@pytest.mark.parametrize("size", [1, 50, 100_000])
async def test_a_good_stream_leaves_byte_for_byte(size: int) -> None:
    """Pings and comments too, and nothing after the end."""
    sent = b": keep-alive\n\n" + MESSAGE_START + PING + BLOCK + END
    parts = [sent[at : at + size] for at in range(0, len(sent), size)]
    answer, record = await answered(streaming(*parts, b"data: [DONE]\n\n", PING), path=MESSAGES)
    assert answer.body == sent
    assert answer.header("request-id") == answer.header("x-request-id")
    assert (record["outcome"], record["finish_reasons"]) == ("completed", ["stop"])
    assert (record["prompt_tokens"], record["completion_tokens"]) == (3, 2)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("max_tokens", "length"), ("stop_sequence", "stop"), ("tool_use", "tool_calls"), ("refusal", "content_filter")],
)
async def test_a_stop_reason_is_a_finish_reason_of_the_contract(reason: str, finish: str) -> None:
    """In streams and whole answers alike."""
    for app in (streaming(BEGUN, BLOCK_STOP, message_delta(reason), MESSAGE_STOP), answering(answer_of(reason))):
        _, record = await answered(app, path=MESSAGES)
        assert record["finish_reasons"] == [finish]


async def test_a_stop_reason_waits_for_the_end_that_it_promises() -> None:
    """A client that takes it for the end would take an answer for whole that the next event may call failed."""
    gate = asyncio.Event()
    app = streaming(BEGUN, BLOCK_STOP, message_delta("end_turn"), b": comment\n\n", PING, gate.wait, RuntimeError("no"))
    async with serving(app) as server, server.connect(path=MESSAGES) as (reader, _):
        seen = await reader.readuntil(b"content_block_stop")
        gate.set()
        rest = seen + await reader.read()
    assert b"end_turn" not in rest
    assert rest.count(b"event: error") == 1


async def test_an_end_without_its_name_gets_it() -> None:
    """Stock clients do not see an event that has none."""
    answer, record = await answered(
        streaming(BEGUN, BLOCK_STOP, message_delta("end_turn"), b'data: {"type": "message_stop"}\n\n'), path=MESSAGES
    )
    assert answer.body == GOOD
    assert record["outcome"] == "completed"


async def test_usage_in_the_middle_is_no_end() -> None:
    """A `message_delta` without a stop_reason goes on with what follows it."""
    sent = MESSAGE_START + message_delta(None) + BLOCK + END
    answer, _ = await answered(streaming(sent), path=MESSAGES)
    assert answer.body == sent


ERROR = named("error", error={"type": "internal_error", "message": "cannot open /root/x: Traceback"})
BAD_ENDINGS: dict[str, tuple[list[Any], str, str]] = {
    "no stop_reason": ([BEGUN, BLOCK_STOP, message_delta(None), MESSAGE_STOP], "generation_aborted", "api_error"),
    "only message_stop": ([BEGUN, MESSAGE_STOP], "generation_aborted", "api_error"),
    "body ends": ([BEGUN], "generation_aborted", "api_error"),
    "no message_stop": ([BEGUN, BLOCK_STOP, message_delta("end_turn")], "generation_aborted", "api_error"),
    "half an event": ([BEGUN, MESSAGE_STOP[:20]], "generation_aborted", "api_error"),
    "done instead": ([BEGUN, b"data: [DONE]\n\n"], "generation_aborted", "api_error"),
    "exception": ([BEGUN, RuntimeError("/root/secret")], "internal_server_error", "api_error"),
    "vLLM's error": ([BEGUN, ERROR], "internal_server_error", "api_error"),
    "an error in a delta": (
        [BEGUN, named("content_block_delta", index=0, error={"message": "/root/x"}), MESSAGE_STOP],
        "internal_server_error",
        "api_error",
    ),
    "two errors": ([BEGUN, ERROR, ERROR, MESSAGE_STOP], "internal_server_error", "api_error"),
    "Anthropic's error": (
        [BEGUN, named("error", error={"type": "overloaded_error", "message": "Overloaded"})],
        "queue_overloaded",
        "overloaded_error",
    ),
    "unknown stop_reason": ([BEGUN, message_delta("tired"), MESSAGE_STOP], "unknown_finish_reason", "api_error"),
    "the engine's own word": ([BEGUN, message_delta("abort"), MESSAGE_STOP], "generation_aborted", "api_error"),
    "a bad end taken back": (
        [BEGUN, message_delta("abort"), message_delta("end_turn"), MESSAGE_STOP],
        "generation_aborted",
        "api_error",
    ),
    "no JSON": ([BEGUN, b"event: message_stop\ndata: {oops\n\n"], "internal_server_error", "api_error"),
    "no object": ([BEGUN, b"event: message_stop\ndata: []\n\n"], "internal_server_error", "api_error"),
}


@pytest.mark.parametrize(("steps", "code", "kind"), BAD_ENDINGS.values(), ids=BAD_ENDINGS)
async def test_a_bad_ending_becomes_one_error_event(steps: list[Any], code: str, kind: str) -> None:
    """In Anthropic's envelope, and nothing follows it."""
    answer, record = await answered(streaming(*steps), path=MESSAGES)
    name, data = last_word(answer)
    assert (name, data["type"], data["request_id"]) == ("error", "error", answer.header("x-request-id"))
    assert (data["error"]["code"], data["error"]["type"]) == (code, kind)
    assert b"/root" not in answer.body
    assert b"message_stop" not in answer.body
    assert record["outcome"] == CODES[Code(code)].outcome
    assert (record["error_code"], record["http_status"]) == (code, 200)


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_the_engine_gave_up_is_no_success(stream: bool) -> None:
    """vLLM says `end_turn` where no token had come."""
    app = (
        streaming(MESSAGE_START, message_delta("end_turn"), MESSAGE_STOP)
        if stream
        else answering(answer_of("end_turn"))
    )
    answer, record = await answered(engine_says(app, "abort"), {"model": "m", "stream": stream}, path=MESSAGES)
    error = last_word(answer)[1]["error"] if stream else envelope(answer)
    assert error["code"] == "generation_aborted"
    assert b"end_turn" not in answer.body
    assert (record["error_code"], record["finish_reasons"]) == ("generation_aborted", ["abort"])


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reason_that_this_protocol_has_no_word_for_is_still_success(stream: bool) -> None:
    """vLLM's repetition guard ends an answer without a stop_reason."""
    app = streaming(BEGUN, BLOCK_STOP, message_delta(None), MESSAGE_STOP) if stream else answering(answer_of(None))
    answer, record = await answered(engine_says(app, "repetition"), {"model": "m", "stream": stream}, path=MESSAGES)
    assert answer.status == 200
    assert b"error" not in answer.body
    assert (record["outcome"], record["finish_reasons"]) == ("completed", ["repetition"])


@pytest.mark.parametrize(
    ("app", "status", "code", "kind"),
    [
        (answering(answer_of(None)), 503, "generation_aborted", "api_error"),
        (answering(b"{"), 500, "internal_server_error", "api_error"),
        (answering(b"[]"), 500, "internal_server_error", "api_error"),
        (
            answering({"type": "error", "error": {"type": "x", "message": "no"}}),
            500,
            "internal_server_error",
            "api_error",
        ),
        (answering({"error": "Unauthorized"}, status=401), 401, "unauthorized", "authentication_error"),
        (answering({}, status=403), 403, "permission_denied", "permission_error"),
        (answering({"detail": "Not Found"}, status=404), 404, "not_found", "not_found_error"),
        (answering({}, status=405), 405, "method_not_allowed", "invalid_request_error"),
        (answering({}, status=413), 413, "request_too_large", "request_too_large"),
        (answering({}, status=422), 400, "invalid_request_error", "invalid_request_error"),
        (answering({}, status=429), 429, "rate_limit_exceeded", "rate_limit_error"),
        (answering({}, status=500), 500, "internal_server_error", "api_error"),
        (answering({}, status=501), 501, "not_implemented", "api_error"),
        (answering({}, status=503), 503, "engine_unavailable", "api_error"),
        (answering({}, status=504), 504, "gateway_timeout", "timeout_error"),
        (answering({"error": {"type": "overloaded_error"}}, status=529), 503, "queue_overloaded", "overloaded_error"),
        (streaming(RuntimeError("no")), 500, "internal_server_error", "api_error"),
        (streaming(ERROR), 500, "internal_server_error", "api_error"),
    ],
)
async def test_an_error_answer_is_read_by_clients_of_both_protocols(
    app: App, status: int, code: str, kind: str
) -> None:
    """Anthropic's type names, and everything that ours has beside them."""
    answer, _ = await answered(app, {"model": "m"}, path=MESSAGES)
    error = envelope(answer)
    assert (answer.status, error["code"], error["type"]) == (status, code, kind)


async def test_the_shims_own_refusals_speak_the_protocol_too() -> None:
    """Whatever they are about; counting tokens is asked by the same clients."""
    async with serving(answering(answer_of("end_turn")), max_body_bytes=10) as server:
        for path in (MESSAGES, f"{MESSAGES}/count_tokens", "/anthropic/v1/messages"):
            answer = await server.ask({"model": "something"}, path=path)
            assert (answer.status, envelope(answer)["type"]) == (413, "request_too_large")
        answer = await server.ask(b"{}", path=MESSAGES, headers={"request-timeout-ms": "never"})
        assert envelope(answer)["param"] == "request-timeout-ms"


async def test_other_routes_have_no_envelope_of_anthropics() -> None:
    """Their clients would not look for it."""
    answer, _ = await answered(answering({}, status=404), {"model": "m"}, path="/v1/chat/completions")
    assert answer.error["code"] == "not_found"
    assert "type" not in json.loads(answer.body)
    assert answer.header("request-id") is None


async def test_a_timer_and_a_cancellation_are_told_in_its_words() -> None:
    """Each with its own code."""
    app = streaming(BEGUN, lambda: asyncio.Event().wait())
    async with serving(app, idle_timeout=0.2) as server:
        _, data = last_word(await server.ask(path=MESSAGES))
    assert (data["error"]["code"], data["error"]["type"]) == ("generation_stalled", "timeout_error")
    async with serving(app) as server, server.connect(path=MESSAGES) as (reader, _):
        await reader.readuntil(b'"lo"')
        (exchange,) = server.shim._core.register._open  # type: ignore[union-attr]
        exchange.cancel()
        rest = await reader.read()
    sent = json.loads(rest.split(b"data: ")[-1].split(b"\n")[0])
    conforms({"event": "error", "data": sent}, "stream-error-event")
    assert (sent["error"]["code"], sent["error"]["type"]) == ("cancelled", "api_error")
