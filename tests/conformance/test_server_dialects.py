"""Answers of Responses and Messages as one judge reads them: in the words of chat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lastword._sse import ServerSentEvent
from lastword.conformance._faults import settle
from lastword.conformance.server._dialects import as_chat, body_as_chat
from lastword.conformance.server._exchange import Answer
from lastword.conformance.server._judge import judge, read
from lastword.conformance.server._request import Target, request_of


def event(kind: str, **data: object) -> ServerSentEvent:
    return ServerSentEvent(json.dumps({"type": kind, **data}), kind)


def answer(*events: ServerSentEvent) -> Answer:
    return Answer(200, [("content-type", "text/event-stream")], events=list(events), end="complete")


def judged(endpoint: str, expect: dict[str, Any], *events: ServerSentEvent) -> tuple[str, tuple[str, ...]]:
    request = request_of(Target("h", 1, model="m"), {"stream": True, "endpoint": endpoint}, "a/b")
    verdict, reasons = settle(
        list(judge({"status": 200, **expect}, request, answer(*events), frozenset({"RSP-1", "MSG-3"})))
    )
    return str(verdict), reasons


DELTA = event("response.output_text.delta", delta="Hi")
TEXT = event("content_block_delta", delta={"type": "text_delta", "text": "Hi"})
WHOLE = {"terminal": "done", "text": "Hi", "finish_reasons": {"0": "stop"}}
COMPLETED = event("response.completed", response={"status": "completed", "usage": {"input_tokens": 1}})
DELTA_END = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2})
STOP = event("message_stop")


def test_a_good_stream_is_right() -> None:
    """Whatever else is among its events."""
    assert (
        judged("responses", {**WHOLE, "usage": {"input_tokens": 1}}, event("response.created"), DELTA, COMPLETED)[0]
        == "right"
    )
    assert (
        judged("messages", {**WHOLE, "usage": {"output_tokens": 2}}, event("ping"), TEXT, DELTA_END, STOP)[0] == "right"
    )


@pytest.mark.parametrize(
    ("endpoint", "events", "verdict"),
    [
        ("responses", (DELTA,), "silent"),
        ("responses", (DELTA, ServerSentEvent("[DONE]")), "silent"),
        ("responses", (DELTA, COMPLETED, ServerSentEvent("[DONE]")), "detail"),
        ("responses", (DELTA, event("response.completed", response={"status": "incomplete"})), "silent"),
        ("responses", (DELTA, event("response.incomplete", response={"incomplete_details": None})), "silent"),
        ("messages", (TEXT, STOP), "silent"),
        ("messages", (TEXT, DELTA_END), "silent"),
        ("messages", (TEXT, event("message_delta", delta={"stop_reason": "max_tokens"}), STOP), "silent"),
        ("messages", (TEXT, ServerSentEvent("oops"), STOP), "silent"),
        ("messages", (TEXT, DELTA_END, STOP, STOP), "detail"),
    ],
)
def test_an_end_that_is_none_is_seen(endpoint: str, events: tuple[ServerSentEvent, ...], verdict: str) -> None:
    """Missing, foreign, doubled, or with the wrong reason."""
    assert judged(endpoint, WHOLE, *events)[0] == verdict


@pytest.mark.parametrize(
    ("kind", "status"), [("completed", "in_progress"), ("completed", "queued"), ("incomplete", "in_progress")]
)
def test_an_end_that_contradicts_itself_is_none(kind: str, status: str) -> None:
    """Whatever reason it gives (RSP-2)."""
    end = event(f"response.{kind}", response={"status": status, "incomplete_details": {"reason": "max_output_tokens"}})
    assert judged("responses", {"terminal": "done", "text": "Hi"}, DELTA, end)[0] == "silent"


@pytest.mark.parametrize("endpoint", ["responses", "messages"])
def test_an_error_is_held_against_the_shape_of_its_protocol(endpoint: str, error: dict[str, Any]) -> None:
    """As ours, and as the stock clients of the endpoint read it."""
    expect = {"terminal": "error", "error": {"code": "engine_unavailable"}}
    good = {
        "responses": event(
            "response.failed", sequence_number=3, response={"status": "failed", "error": error}, error=error
        ),
        "messages": event("error", error={**error, "type": "api_error"}, request_id="r"),
    }[endpoint]
    bare = {
        "responses": event("response.failed", sequence_number=3, response={"status": "failed", "error": error}),
        "messages": event("error", error=error),
    }[endpoint]
    assert judged(endpoint, expect, good) == ("right", ())
    verdict, reasons = judged(endpoint, expect, bare)
    assert verdict == "wrong_code"
    assert "not in the contract's shape" in reasons[0]
    success = COMPLETED if endpoint == "responses" else STOP
    assert judged(endpoint, expect, good, success)[0] == "wrong_code"


@pytest.fixture
def error() -> dict[str, Any]:
    members = {
        "message": "Gone.",
        "type": "server_error",
        "param": None,
        "code": "engine_unavailable",
        "request_id": "r",
    }
    more = {"category": "retryable", "retryable": True, "retry_after_ms": 1000, "origin": "shim", "details": {}}
    return {**members, **more, "contract": "1"}


@pytest.mark.parametrize(
    ("endpoint", "body", "reason"),
    [
        ("responses", {"status": "completed", "output": [{"content": [{"text": "Hi"}]}]}, "stop"),
        (
            "responses",
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []},
            "length",
        ),
        ("responses", {"status": "failed", "error": None}, None),
        ("messages", {"content": [{"text": "Hi"}], "stop_reason": "tool_use"}, "tool_calls"),
        ("messages", {"content": []}, None),
    ],
)
def test_a_whole_answer_has_the_finish_reason_that_its_status_means(
    endpoint: str, body: dict[str, Any], reason: str | None
) -> None:
    """None where it is none of success."""
    (choice,) = body_as_chat(endpoint, body)["choices"]
    assert choice["finish_reason"] == reason


def test_chat_is_left_as_it_is() -> None:
    """Word for word."""
    events = [ServerSentEvent("[DONE]"), event("response.completed")]
    assert [told.event for told in as_chat("chat", events)] == events
    assert body_as_chat("chat", {"status": "completed"}) == {"status": "completed"}


def test_a_request_asks_in_the_words_of_its_endpoint() -> None:
    """Question, length and path."""
    asked = {}
    for endpoint in ("responses", "messages"):
        request = request_of(Target("h", 1, model="m"), {"stream": True, "endpoint": endpoint}, "a/b")
        asked[request.path] = sorted(json.loads(request.body))
        assert read(request, answer()).tracker.finish_reasons == {}
    assert asked == {
        "/v1/responses": ["input", "max_output_tokens", "model", "stream"],
        "/v1/messages": ["max_tokens", "messages", "model", "stream"],
    }
