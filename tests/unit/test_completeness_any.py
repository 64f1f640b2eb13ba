"""No sequence of events makes the tracker raise, and none makes it say completed without cause."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword._codes import FINISH_REASONS, PROFILES
from lastword._completeness import StreamTracker, WireEnd
from lastword._sse import ServerSentEvent

SUCCESS = {name for name, reason in FINISH_REASONS.items() if reason.success}
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["error", "stop"])
)
NAMES = st.sampled_from(
    [
        "choices",
        "index",
        "delta",
        "message",
        "text",
        "content",
        "role",
        "tool_calls",
        "function_call",
        "function",
        "name",
        "arguments",
        "id",
        "usage",
        "error",
        "object",
        "type",
    ]
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=10
)
REASONS = st.sampled_from([None, "", *FINISH_REASONS, "weird"])
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "index": st.integers(0, 2) | JSON,
        "delta": st.dictionaries(NAMES, JSON, max_size=3) | JSON,
        "message": JSON,
        "text": JSON,
        "finish_reason": REASONS | JSON,
    },
)
CHUNKS = st.fixed_dictionaries(
    {"choices": st.lists(CHOICES | JSON, max_size=3) | JSON}, optional={"usage": JSON, "error": JSON, "object": JSON}
)
GOOD = st.builds(
    lambda index, reason: {"choices": [{"index": index, "delta": {"content": "a"}, "finish_reason": reason}]},
    st.integers(0, 2),
    REASONS,
)
DATA = (GOOD | CHUNKS | JSON).map(json.dumps) | st.sampled_from(["[DONE]", "", " "]) | st.text(max_size=10)
EVENTS = st.builds(ServerSentEvent, DATA, st.sampled_from(["", "", "", "message", "error"]))
LIKELY = st.builds(ServerSentEvent, GOOD.map(json.dumps) | st.just("[DONE]"))
STREAMS = st.lists(EVENTS, max_size=8) | st.lists(LIKELY, max_size=8)
WIRES: st.SearchStrategy[WireEnd] = st.sampled_from(["complete", "truncated", "reset"])


@given(STREAMS, WIRES, st.booleans(), st.integers(1, 3))
def test_completed_needs_every_choice_and_done(
    events: list[ServerSentEvent], wire: WireEnd, pending: bool, choices: int
) -> None:
    """Whatever comes in whatever order: None from ``end`` means that all of it is there (OUT-1, STR-1)."""
    tracker = StreamTracker(expected_choices=choices)
    for each in events:
        tracker.accept(each)
    if tracker.end(wire, pending=pending) is None:
        assert "[DONE]" in [each.data.strip() for each in events]
        assert tracker.terminal == "done"
        assert set(range(choices)) <= set(tracker.finish_reasons)
        assert set(tracker.finish_reasons.values()) <= SUCCESS


@given(STREAMS, WIRES, st.sampled_from(sorted(PROFILES)))
def test_no_profile_accepts_an_error_or_a_cut(events: list[ServerSentEvent], wire: WireEnd, profile: str) -> None:
    """A profile excuses a missing [DONE] or finish_reason; never an error, an unknown finish or a broken wire."""
    tracker = StreamTracker(profile=PROFILES[profile])
    for each in events:
        tracker.accept(each)
    if tracker.end(wire) is None:
        assert tracker.error is None
        assert tracker.terminal == "done" or wire == "complete"
        assert {reason for reason in tracker.finish_reasons.values() if reason} <= SUCCESS


@given(STREAMS)
def test_no_sequence_of_events_makes_it_raise(events: list[ServerSentEvent]) -> None:
    """Every view of it can be taken after every event, and a second verdict is the same as the first."""
    tracker = StreamTracker()
    for each in events:
        tracker.accept(each)
        partial = tracker.partial()
        assert (partial.text, partial.chunks) == (tracker.text, tracker.chunks)
        assert set(tracker.tool_calls) <= set(partial.tool_calls)
        assert isinstance(tracker.warnings, tuple)
    assert tracker.end() == tracker.end()


@given(STREAMS, EVENTS)
def test_the_terminal_event_is_the_last_that_counts(events: list[ServerSentEvent], late: ServerSentEvent) -> None:
    """Once there is a verdict nothing changes it (STR-8)."""
    tracker = StreamTracker()
    for each in [*events, ServerSentEvent("[DONE]")]:
        tracker.accept(each)
    before = tracker.end(), tracker.partial()
    assert tracker.accept(late) is None
    assert (tracker.end("reset", pending=True), tracker.partial()) == before


@given(JSON | CHUNKS)
def test_no_body_makes_it_raise(body: object) -> None:
    """A whole answer of any shape is completed by known good finish_reasons or gets an error."""
    tracker = StreamTracker()
    tracker.accept_body(json.loads(json.dumps(body)))
    if tracker.end() is None:
        assert 0 in tracker.finish_reasons
        assert set(tracker.finish_reasons.values()) <= SUCCESS


DEEP = (
    '{"choices": %s}',
    '{"choices": [%s]}',
    '{"choices": [{"index": %s}]}',
    '{"choices": [{"delta": {"x": %s}, "finish_reason": %s}]}',
    '{"choices": [{"delta": {"tool_calls": [{"id": %s, "function": {"name": %s, "arguments": %s}}]}}]}',
    '{"usage": %s}',
    '{"error": %s}',
    "%s",
)


@pytest.mark.parametrize("template", DEEP)
def test_no_depth_makes_it_raise(template: str) -> None:
    """Also not the depths that the parser just about accepts and a writer does not."""
    for depth in [*range(850, 1050), 100_000]:
        tracker = StreamTracker()
        tracker.accept(ServerSentEvent(template.replace("%s", "[" * depth + "1" + "]" * depth)))
        tracker.partial()
        assert tracker.end() is not None
