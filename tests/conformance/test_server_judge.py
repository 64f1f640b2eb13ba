"""How an answer of a server is read and judged, where whole runs show it badly: words that leak, placeholders, metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lastword._sse import ServerSentEvent
from lastword.conformance._results import ConformanceError
from lastword.conformance.server._exchange import Answer, End
from lastword.conformance.server._judge import judge
from lastword.conformance.server._probe import _context, _counts
from lastword.conformance.server._request import Target, read_url, request_of

ERROR: dict[str, object] = {
    "message": "no", "type": "invalid_request_error", "param": None, "code": "invalid_request_error",
    "category": "fixable", "retryable": False, "retry_after_ms": None, "request_id": "r", "origin": "engine",
    "details": {}, "contract": "1",
}  # fmt: skip
WANTED = {"status": 400, "error": {"code": "invalid_request_error"}}
STREAM = {"status": 200, "terminal": "done"}
HI = json.dumps({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": None}]})
STOP = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


def refused(**changed: object) -> list[str]:
    """What is wrong with an error of the contract's that has these members."""
    answer = Answer(status=400, headers=[("content-type", "application/json")], end="complete")
    answer.body += json.dumps({"error": {**ERROR, **changed}}).encode()
    request = request_of(Target("h", 1, model="m"), {"stream": False}, "a/b")
    return [fault.reason for fault in judge(WANTED, request, answer, frozenset())]


def streamed(*events: str, end: End = "complete", expect: Any = STREAM) -> list[tuple[str, str]]:
    """What is wrong with a stream of these events."""
    answer = Answer(status=200, headers=[("content-type", "text/event-stream")], end=end)
    answer.events = [ServerSentEvent(event) for event in events]
    request = request_of(Target("h", 1, model="m"), {"stream": True}, "a/b")
    return [(fault.verdict.value, fault.reason) for fault in judge(expect, request, answer, frozenset())]


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ("no such file: /srv/app/engine.py", "a file path"),
        ("cannot open C:\\models\\m.gguf", "a file path"),
        ("loaded from /home/me", "a file path"),
        ('File "engine.py", line x', "a stack trace"),
        ("<Engine object at 0x7f00deadbeef>", "a memory address"),
        ("worker 10.0.0.7:29500 died", "a network address"),
        ("upstream localhost:8000 is gone", "a network address"),
        ("CUDA is out of memory", "a driver's text"),
        ("/chat/completions: no field `messages`", None),
        ("call /v1/models, and/or read https://docs.example/api/errors.html", None),
    ],
)
def test_words_that_leak(message: str, what: str | None) -> None:
    """ERR-4: files, traces, addresses and drivers; routes of the API and links are no secret."""
    found = [reason for reason in refused(message=message) if "ERR-4" in reason]
    assert found == ([] if what is None else [f"the message tells {what} (ERR-4)"])


def test_numbers_are_looked_for_in_all_of_the_details() -> None:
    """ERR-3: by value, however deep and under whatever name; parts of names are no numbers."""
    message = "n is 7, not -3 or 2.50; see gpt-4, v2 and chapter 007"
    assert refused(message=message, details={"n": 7, "limits": [-3, {"most": 2.5}]}) == []
    assert refused(message=message, details={"n": "7"}) == ["the message has -3, 2.50, and details do not (ERR-3)"]


def test_an_error_that_names_the_contract_has_to_keep_to_it() -> None:
    """A shape of some other server's is a detail; a wrong one of the contract's own is not."""
    (reason,) = refused(request_id=None)
    assert reason.startswith("the error is not in the contract's shape")
    assert refused(code="brand_new") == ["code is brand_new, not invalid_request_error"]
    assert refused(category="retryable")[0].startswith("the error is not in the contract's shape")


@pytest.mark.parametrize(
    ("events", "end", "expected"),
    [
        ((HI, STOP, "[DONE]"), "complete", []),
        ((HI, STOP, " [DONE] "), "late", [("detail", "the body had not ended 2 s after its terminal event")]),
        ((HI, STOP), "late", [("hang", "the stream did not end in the time allowed")]),
        ((HI, STOP), "truncated", [("wrong_code", "the connection was cut, and no terminal event told why (STR-14)")]),
        ((HI, "nonsense"), "complete", [("wrong_code", "an event that is neither a chunk nor an error was passed on")]),
        ((HI, STOP, "[DONE]", HI), "complete", [("detail", "more was sent after the terminal event (STR-14)")]),
        ((HI, "", STOP, "[DONE]"), "complete", []),
    ],
)
def test_ends_of_streams(events: tuple[str, ...], end: End, expected: list[tuple[str, str]]) -> None:
    """One terminal event, nothing after it, and the wire's end soon."""
    assert streamed(*events, end=end) == expected


def test_an_error_after_done_is_silence() -> None:
    """Whoever stops at [DONE] never sees it."""
    found = streamed(HI, STOP, "[DONE]", json.dumps({"error": ERROR}))
    assert found == [("silent", "the stream has more than one terminal event: [DONE] and an error event (STR-14)")]


def test_a_changed_text_is_silence() -> None:
    """An answer that says it is whole and lacks something is the worst of lies."""
    found = streamed(HI, STOP, "[DONE]", expect={**STREAM, "text": "hi there"})
    assert found == [("silent", "the text is 'hi', not 'hi there'")]


def test_placeholders_are_filled_in() -> None:
    """What a vector cannot know of the server."""
    target = Target("h", 1, prefix="/api", model="big", context=100, extra={"ignore_eos": True})
    body = {"max_tokens": "$beyond", "n": 2, "messages": [{"role": "user", "content": "$overflow"}]}
    request = request_of(
        target, {"stream": True, "body": body, "without": ["model"], "headers": {"x-request-id": None}}, "a/b"
    )
    sent = json.loads(request.body)
    assert (sent["max_tokens"], sent["ignore_eos"], "model" in sent) == (101, True, False)
    assert sent["messages"][0]["content"].count("word ") == 200
    assert (request.path, request.choices, request.request_id) == ("/api/v1/chat/completions", 2, None)
    assert "x-request-id" not in dict(request.headers)


def test_addresses() -> None:
    """As people write base URLs."""
    assert read_url("http://127.0.0.1:8000/v1") == ("127.0.0.1", 8000, False, "")
    assert read_url("https://llm.example/openai/v1/") == ("llm.example", 443, True, "/openai")
    assert read_url("localhost:8000") == ("localhost", 8000, False, "")
    with pytest.raises(ConformanceError, match="--url http://h:x"):
        read_url("http://h:x")


def test_what_engines_tell_of_themselves() -> None:
    """Metrics of several processes add up; the context stands where each engine puts it."""
    text = '# HELP x y\nvllm:num_requests_running{engine="0"} 1.0\nvllm:num_requests_running{engine="1"} 2.0\nother 5\n'
    assert _counts(text, ("vllm:num_requests_running", "vllm:num_requests_waiting")) == {"vllm:num_requests_running": 3}
    assert _context({"max_model_len": 2048}) == 2048
    assert _context({"meta": {"n_ctx": 512, "n_ctx_train": 8192}}) == 512
    assert _context({"meta": None}) is None
