"""The tracker: events and the way the wire ended become exactly one verdict."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from lastword._classify import ErrorInfo, make_error
from lastword._codes import PROFILES, Code
from lastword._completeness import StreamTracker, WireEnd
from lastword._sse import ServerSentEvent

Feed = list[object]


def event(data: object, name: str = "") -> ServerSentEvent:
    return ServerSentEvent(data if isinstance(data, str) else json.dumps(data), name)


def chunk(content: str | None = None, finish: object = None, index: int = 0, **delta: object) -> dict[str, Any]:
    if content is not None:
        delta["content"] = content
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


def feed(*data: object, choices: int = 1, profile: str | None = None) -> StreamTracker:
    tracker = StreamTracker(expected_choices=choices, profile=PROFILES[profile] if profile else None)
    for each in data:
        tracker.accept(each if isinstance(each, ServerSentEvent) else event(each))
    return tracker


def code(info: ErrorInfo | None) -> str | None:
    return None if info is None else info.code


STOP = chunk(finish="stop")
BEFORE = "before the stream's terminal event"
UNREAD = "before an answer could be read from it"


@pytest.mark.parametrize(
    ("data", "wire", "expected"),
    [
        ([chunk("a"), STOP, "[DONE]"], "complete", None),
        ([chunk("a", "stop"), " [DONE]\n"], "complete", None),
        ([STOP, "[DONE]"], "reset", None),
        ([STOP, "[DONE]"], "truncated", None),
        ([STOP, "[DONE]", {"error": "late"}], "complete", None),
        ([STOP, "[DONE]", "garbage"], "complete", None),
        ([chunk("a"), STOP], "complete", Code.STREAM_INCOMPLETE),
        ([chunk("a"), STOP], "truncated", Code.STREAM_INCOMPLETE),
        ([chunk("a")], "reset", Code.STREAM_INCOMPLETE),
        ([], "complete", Code.STREAM_INCOMPLETE),
        (["[DONE]"], "complete", Code.STREAM_INCOMPLETE),
        ([chunk("a"), "[DONE]"], "complete", Code.STREAM_INCOMPLETE),
        ([chunk("a", ""), "[DONE]"], "complete", Code.STREAM_INCOMPLETE),
        ([STOP, chunk("a"), "[DONE]"], "complete", None),
        ([{"error": "boom"}, "[DONE]"], "complete", Code.INTERNAL_SERVER_ERROR),
        ([STOP, {"error": "boom"}, "[DONE]"], "reset", Code.INTERNAL_SERVER_ERROR),
        ([event("gone", "error")], "complete", Code.INTERNAL_SERVER_ERROR),
        ([event("", "error")], "complete", Code.INTERNAL_SERVER_ERROR),
        ([event(STOP, "error"), "[DONE]"], "complete", Code.INTERNAL_SERVER_ERROR),
        ([{"object": "error", "message": "m", **STOP}, "[DONE]"], "complete", Code.INTERNAL_SERVER_ERROR),
        ([{"type": "error", "message": "m", **STOP}, "[DONE]"], "complete", Code.INTERNAL_SERVER_ERROR),
        ([{"error": None, **STOP}, "[DONE]"], "complete", None),
        ([chunk(finish="abort"), "[DONE]"], "complete", Code.GENERATION_ABORTED),
        ([chunk(finish="abort"), STOP, "[DONE]"], "complete", Code.GENERATION_ABORTED),
        ([STOP, chunk(finish="abort"), "[DONE]"], "complete", Code.GENERATION_ABORTED),
        ([chunk(finish="abort")], "reset", Code.GENERATION_ABORTED),
        ([chunk(finish="abort"), {"error": "boom"}], "complete", Code.GENERATION_ABORTED),
        ([chunk(finish="error"), "[DONE]"], "complete", Code.INTERNAL_SERVER_ERROR),
        ([chunk(finish="weird"), "[DONE]"], "complete", Code.UNKNOWN_FINISH_REASON),
        ([chunk(finish={"a": 1}), "[DONE]"], "complete", Code.UNKNOWN_FINISH_REASON),
        ([chunk(finish="weird")], "complete", Code.STREAM_INCOMPLETE),
        (["not json", STOP, "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        (['{"choices": [', "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        (["[" * 100_000, "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        ([[], "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        (["null", "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        ([{"choices": "x"}, "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        ([{"choices": ["x"]}, "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        ([{"choices": [{"index": "0"}]}, "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        ([{"choices": [{"index": -1}]}, "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        ([{"choices": [{"index": True}]}, "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        ([{"choices": [{"delta": "x"}]}, "[DONE]"], "complete", Code.MALFORMED_RESPONSE),
        (["", "  ", STOP, "[DONE]"], "complete", None),
        ([{"id": "x"}, {"choices": None}, {"detail": None}, STOP, "[DONE]"], "complete", None),
        ([{"choices": []}, STOP, "[DONE]"], "complete", None),
        ([{"choices": [{"finish_reason": "stop"}]}, "[DONE]"], "complete", None),
        ([{"choices": [{"delta": None, "finish_reason": "stop"}]}, "[DONE]"], "complete", None),
    ],
)
def test_verdict(data: Feed, wire: WireEnd, expected: Code | None) -> None:
    """None, that is completed, only after a known good finish_reason and [DONE] (the STR and FIN rules)."""
    assert code(feed(*data).end(wire)) == expected


@pytest.mark.parametrize("reason", ["stop", "length", "tool_calls", "function_call", "content_filter", "repetition"])
def test_the_success_set(reason: str) -> None:
    """Six finish_reasons complete an answer; repetition does so with a warning (FIN-1)."""
    tracker = feed(chunk(finish=reason), "[DONE]")
    assert (tracker.end(), len(tracker.warnings)) == (None, int(reason == "repetition"))


@pytest.mark.parametrize(
    ("data", "choices", "expected"),
    [
        ([STOP, chunk(finish="stop", index=1), "[DONE]"], 2, None),
        ([chunk(finish="stop", index=1), STOP, "[DONE]"], 2, None),
        ([STOP, "[DONE]"], 2, [1]),
        (["[DONE]"], 3, [0, 1, 2]),
        ([STOP, chunk("a", index=1), "[DONE]"], 1, [1]),
        ([chunk("a", index=7), "[DONE]"], 2, [0, 1, 7]),
    ],
)
def test_every_expected_choice_must_finish(data: Feed, choices: int, expected: list[int] | None) -> None:
    """The request says how many there are (OUT-3), and one more that began must finish as well."""
    info = feed(*data, choices=choices).end()
    assert (info and info.details["unfinished_choices"]) == expected


@pytest.mark.parametrize(
    ("profile", "data", "wire", "expected"),
    [
        ("no-done", [STOP], "complete", None),
        ("no-done", [STOP], "truncated", Code.STREAM_INCOMPLETE),
        ("no-done", [chunk("a")], "complete", Code.STREAM_INCOMPLETE),
        ("no-done", [chunk(finish="weird")], "complete", Code.UNKNOWN_FINISH_REASON),
        ("no-done", [STOP, {"error": "boom"}], "complete", Code.INTERNAL_SERVER_ERROR),
        ("null-finish-reason", [chunk("a"), "[DONE]"], "complete", None),
        ("null-finish-reason", [chunk("a")], "complete", Code.STREAM_INCOMPLETE),
        ("null-finish-reason", ["[DONE]"], "complete", Code.STREAM_INCOMPLETE),
        ("null-finish-reason", [chunk(finish="abort"), "[DONE]"], "complete", Code.GENERATION_ABORTED),
    ],
)
def test_profiles_relax_one_thing_each(profile: str, data: Feed, wire: WireEnd, expected: Code | None) -> None:
    """[DONE] or the finish_reason may be missing, and nothing else (STR-7)."""
    assert code(feed(*data, profile=profile).end(wire)) == expected


@pytest.mark.parametrize(
    ("data", "choices", "hints"),
    [
        ([STOP], 1, ["no-done"]),
        ([chunk("a")], 1, []),
        ([chunk("a"), "[DONE]"], 1, ["null-finish-reason"]),
        ([chunk("a"), "[DONE]"], 2, []),
    ],
)
def test_an_error_names_the_profile_that_would_accept_the_answer(data: Feed, choices: int, hints: list[str]) -> None:
    """And none where none would (STR-7)."""
    info = feed(*data, choices=choices).end()
    assert info is not None
    assert [name for name in ("no-done", "null-finish-reason") if f" {name} " in info.message] == hints


@pytest.mark.parametrize(
    ("wire", "pending", "chunks", "expected"),
    [
        ("complete", False, 0, f"the body ended {UNREAD}"),
        ("truncated", False, 0, f"the connection closed in the middle of the body {UNREAD}"),
        ("truncated", False, 1, "the connection closed in the middle of the body {}, after 1 chunk"),
        ("reset", False, 2, "the connection was reset in the middle of the body {}, after 2 chunks"),
        ("complete", True, 1, "the body ended {}, after 1 chunk, with half an event left over"),
    ],
)
def test_an_end_without_a_terminal_event_is_described(wire: WireEnd, pending: bool, chunks: int, expected: str) -> None:
    """How it ended, how much had come, and whether an event was cut; the numbers are in the details (ERR-3)."""
    info = feed(*[chunk("a")] * chunks).end(wire, pending=pending)
    assert info is not None
    assert (info.message, info.details) == (expected.format(BEFORE), {"chunks": chunks, "wire": wire})


@pytest.mark.parametrize(
    ("data", "handed_over"),
    [
        (chunk("a"), True),
        (chunk(role="assistant"), True),
        ({"choices": [], "usage": {}}, True),
        ({"usage": {}}, False),
        ("[DONE]", False),
        ({"error": "x"}, False),
        ("", False),
        ("x", False),
        ({"choices": [1]}, False),
    ],
)
def test_only_chunks_are_handed_over(data: object, handed_over: bool) -> None:
    """An event is returned as parsed if it has a list of choices, and is swallowed otherwise (STR-10)."""
    assert StreamTracker().accept(event(data)) == (data if handed_over else None)


@pytest.mark.parametrize(
    ("data", "progressed"),
    [
        (chunk("a"), True),
        (chunk(reasoning_content="a"), True),
        (chunk(tool_calls=[{"index": 0}]), True),
        (chunk(brand_new={"a": 1}), True),
        ({"choices": [{"index": 0, "text": "a"}]}, True),
        (chunk(""), False),
        (chunk(role="assistant", content=""), False),
        (chunk(refusal=None, tool_calls=[]), False),
        (STOP, False),
        ({"choices": [], "usage": {"completion_tokens": 5}}, False),
        ({"choices": [{"index": 0, "text": ""}]}, False),
        ({"id": "x"}, False),
    ],
)
def test_progress_is_content_known_or_not(data: object, progressed: bool) -> None:
    """Any member of a delta that is not empty and is not the role (TMR-1, TMR-2)."""
    assert feed(data).progressed == progressed


def test_nothing_counts_after_the_terminal_event() -> None:
    """The outcome, the text and the usage are fixed (STR-8)."""
    tracker = feed(chunk("a", "stop"), "[DONE]")
    before = tracker.partial()
    assert tracker.accept(event({**chunk("b", "abort"), "usage": {"total_tokens": 1}})) is None
    tracker.reject(make_error(Code.MALFORMED_RESPONSE, "too late"))
    assert (tracker.partial(), tracker.terminal, tracker.end("reset")) == (before, "done", None)


def test_choices_are_kept_apart() -> None:
    """Interleaved and out of order, each has its own text and finish_reason (STR-5)."""
    tracker = feed(chunk("B", index=1), chunk("a"), chunk("C", "length", index=1), chunk("b", "stop"), choices=2)
    assert (tracker.text, tracker.texts, tracker.finish_reasons) == ("ab", {0: "ab", 1: "BC"}, {1: "length", 0: "stop"})


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        ([{"usage": {"total_tokens": 1}, **STOP}, {"usage": {"total_tokens": 2}, **STOP}], 2),
        ([{"usage": {"total_tokens": 3}, "choices": []}, {"usage": None, **STOP}], 3),
        ([{"usage": {"total_tokens": 4}}], 4),
    ],
)
def test_the_last_usage_holds(usages: list[object], expected: int) -> None:
    """Counts are running totals and are not added up (OUT-4); an event of its own may carry them."""
    assert feed(*usages).usage == {"total_tokens": expected}


@pytest.mark.parametrize("content", [["a"], {"a": 1}, 5, True])
def test_content_that_is_no_text_is_handed_over_and_not_joined(content: Any) -> None:
    """It is progress; what it means is the caller's to say."""
    tracker = feed(chunk(content), STOP, "[DONE]")
    assert (tracker.progressed, tracker.text, tracker.chunks, tracker.end()) == (True, "", 2, None)


def test_partial_is_a_snapshot() -> None:
    """What comes later does not change it."""
    tracker = feed(chunk("a"), chunk("x", index=1))
    partial = tracker.partial()
    tracker.accept(event(chunk("b", "stop")))
    assert (partial.text, partial.texts, partial.finish_reasons) == ("a", {0: "a", 1: "x"}, {0: None, 1: None})
    assert (partial.chunks, partial.usage, partial.tool_calls) == (2, None, ())


@pytest.mark.parametrize(
    ("body", "choices", "expected"),
    [
        ({"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]}, 1, None),
        ({"choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]}, 1, None),
        ({"choices": [{"index": 0, "message": {}, "finish_reason": "stop"}]}, 2, Code.STREAM_INCOMPLETE),
        ({"choices": [{"index": 0, "message": {}, "finish_reason": None}]}, 1, Code.STREAM_INCOMPLETE),
        ({"choices": [{"index": 0, "message": {}, "finish_reason": "abort"}]}, 1, Code.GENERATION_ABORTED),
        ({"choices": [{"index": 0, "message": {}, "finish_reason": "new"}]}, 1, Code.UNKNOWN_FINISH_REASON),
        ({"choices": []}, 1, Code.STREAM_INCOMPLETE),
        ({"choices": [{"message": "x"}]}, 1, Code.MALFORMED_RESPONSE),
        ({"choices": None}, 1, Code.MALFORMED_RESPONSE),
        ({}, 1, Code.MALFORMED_RESPONSE),
        ([], 1, Code.MALFORMED_RESPONSE),
        (None, 1, Code.MALFORMED_RESPONSE),
    ],
)
def test_a_whole_answer_gets_the_same_verdicts(body: object, choices: int, expected: Code | None) -> None:
    """Finish reasons and missing choices mean the same as in a stream (ANS-3, ANS-5)."""
    tracker = StreamTracker(expected_choices=choices)
    tracker.accept_body(body)
    terminal: Literal["done", "error"] = "error" if expected is Code.MALFORMED_RESPONSE else "done"
    assert (code(tracker.end()), tracker.terminal) == (expected, terminal)


def test_half_an_event_is_not_excused_by_a_profile() -> None:
    """A server that never sends [DONE] may still have been cut off: half an event may have been an error's."""
    info = feed(STOP, profile="no-done").end(pending=True)
    assert (info and info.code) == "stream_incomplete"


def test_an_unknown_end_is_not_taken_back() -> None:
    """``stop`` after a finish_reason that nobody knows does not turn it into success (FIN-3)."""
    info = feed(chunk("a", "weird"), STOP, "[DONE]").end()
    assert (info and info.code) == "unknown_finish_reason"
