"""Tool calls out of deltas and whole answers: joined, kept apart, and withheld if they were cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lastword._completeness import StreamTracker
from lastword._outcome import ToolCall
from lastword._sse import ServerSentEvent


def call(index: object = None, id_: object = None, name: object = None, arguments: object = None) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": id_, "function": {key: value for key, value in function.items() if value is not None}}


def stream(*calls: dict[str, Any], finish: str | None = "tool_calls", choice: int = 0) -> StreamTracker:
    """One chunk a call, then the finish_reason."""
    tracker = StreamTracker()
    for each in calls:
        delta = {"tool_calls": [{key: value for key, value in each.items() if value is not None}]}
        tracker.accept(ServerSentEvent(json.dumps({"choices": [{"index": choice, "delta": delta}]})))
    tracker.accept(ServerSentEvent(json.dumps({"choices": [{"index": choice, "delta": {}, "finish_reason": finish}]})))
    return tracker


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([call(0, "a", "f", ""), call(0, None, None, '{"x"'), call(0, None, None, ": 1}")], [("a", "f", '{"x": 1}', 0)]),
        ([call(0, "a", "f", "{}"), call(1, "b", "g", "[]")], [("a", "f", "{}", 0), ("b", "g", "[]", 1)]),
        ([call(1, "b", "g", "1"), call(0, "a", "f", "2"), call(1, None, None, "3")], [("a", "f", "2", 0), ("b", "g", "13", 1)]),
        ([call(0, "a", "f", ""), call(0, "", "", "{}")], [("a", "f", "{}", 0)]),
        ([call(0, "a", "f", {"x": 1})], [("a", "f", '{"x": 1}', 0)]),
        ([call(0, None, None, "{}")], [(None, "", "{}", 0)]),
        ([call(0, 5, ["f"], None)], [("5", '["f"]', "", 0)]),
        # servers that send no index
        ([call(None, "a", "f", "1"), call(None, None, None, "2")], [("a", "f", "12", 0)]),
        ([call(None, "a", "f", "1"), call(None, "a", None, "2")], [("a", "f", "12", 0)]),
        ([call(None, "a", "f", "1"), call(None, "b", "g", "2")], [("a", "f", "1", 0), ("b", "g", "2", 1)]),
        ([call(None, None, "f", "1")], [(None, "f", "1", 0)]),
        ([call(None, id_, "f", id_) for id_ in "abac"], [("a", "f", "aa", 0), ("b", "f", "b", 1), ("c", "f", "c", 2)]),
    ],
)  # fmt: skip
def test_deltas_are_joined(calls: list[dict[str, Any]], expected: list[tuple[str | None, str, str, int]]) -> None:
    """By index, else by id; id and name are taken once, arguments are appended."""
    assert stream(*calls).tool_calls == [ToolCall(id_, name, text, 0, index) for id_, name, text, index in expected]


@pytest.mark.parametrize("calls", [[1, None, "x"], "x", {"a": 1}, [[]], [{"function": "x"}]])
def test_what_is_no_tool_call_does_not_raise(calls: object) -> None:
    """It was handed over in the chunk; here it is skipped or an empty call."""
    tracker = StreamTracker()
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "stop"}]}
    tracker.accept(ServerSentEvent(json.dumps(chunk)))
    assert [found.raw_arguments for found in tracker.tool_calls] == [""] * (calls == [{"function": "x"}])


@pytest.mark.parametrize(
    ("finish", "arguments", "count"),
    [
        ("tool_calls", '{"a"', 1),
        ("stop", '{"a"', 1),
        ("stop", "", 1),
        ("length", '{"a"', 0),
        ("length", "", 0),
        ("length", "12", 0),
        ("length", '{"a": 1}', 1),
        (None, '{"a": 1}', 0),
        ("abort", '{"a": 1}', 0),
        ("weird", '{"a": 1}', 0),
    ],
)
def test_a_call_is_withheld_unless_its_choice_has_finished(finish: str | None, arguments: str, count: int) -> None:
    """And with ``length`` unless its arguments are one whole object (TOOL-2); partial has it as it came."""
    tracker = stream(call(0, "a", "f", arguments), finish=finish)
    assert (len(tracker.tool_calls), len(tracker.partial().tool_calls)) == (count, 1)


def test_calls_of_several_choices_are_kept_apart() -> None:
    """Each call knows its choice; one that has finished does not wait for another."""
    tracker = StreamTracker(expected_choices=2)
    for choice, finish in ((1, "tool_calls"), (0, None)):
        delta = {"tool_calls": [call(0, f"id{choice}", "f", "{}")]}
        data = {"choices": [{"index": choice, "delta": delta, "finish_reason": finish}]}
        tracker.accept(ServerSentEvent(json.dumps(data)))
    assert tracker.tool_calls == [ToolCall("id1", "f", "{}", 1, 0)]
    assert [(found.choice, found.id) for found in tracker.partial().tool_calls] == [(0, "id0"), (1, "id1")]


def test_the_old_function_call_is_a_tool_call_without_id() -> None:
    """Name first, then the arguments in pieces."""
    tracker = StreamTracker()
    for function, finish in (({"name": "f", "arguments": ""}, None), ({"arguments": "{}"}, "function_call")):
        choice = {"index": 0, "delta": {"function_call": function}, "finish_reason": finish}
        tracker.accept(ServerSentEvent(json.dumps({"choices": [choice]})))
    assert tracker.tool_calls == [ToolCall(None, "f", "{}", 0, 0)]


@pytest.mark.parametrize("indexes", [(None, None), (0, 1), (0, 0), (5, 3)])
def test_the_calls_of_a_whole_answer_are_kept_apart_by_their_place(indexes: tuple[int | None, int | None]) -> None:
    """Whatever index a server gives them; some give none, and some the same to all."""
    calls = [call(index, "a", name, "{}") for index, name in zip(indexes, "fg", strict=True)]
    tracker = StreamTracker()
    tracker.accept_body({"choices": [{"index": 0, "message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]})
    assert [(found.name, found.raw_arguments, found.index) for found in tracker.tool_calls] == [
        ("f", "{}", 0),
        ("g", "{}", 1),
    ]
