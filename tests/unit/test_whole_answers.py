"""A whole answer is judged by the machine that judges streams."""

from __future__ import annotations

import json
from typing import Any

from lastword._completeness import StreamTracker
from lastword._sse import ServerSentEvent


def code(tracker: StreamTracker) -> str | None:
    info = tracker.end()
    return None if info is None else info.code


def whole(*choices: dict[str, Any], expected: int = 1) -> StreamTracker:
    tracker = StreamTracker(expected_choices=expected)
    tracker.accept_body({"choices": list(choices)})
    return tracker


def test_a_whole_answer_has_an_answer_in_it() -> None:
    """A finish_reason beside neither a message nor a text finishes nothing."""
    assert code(whole({"index": 0, "finish_reason": "stop"})) == "malformed_response"
    assert whole({"index": 0, "finish_reason": "stop", "text": ""}).end() is None


def test_choices_of_a_whole_answer_without_an_index_are_told_apart_by_their_place() -> None:
    """Servers that leave the index out, or write null, still send a list in order."""
    tracker = whole(
        {"index": None, "message": {"content": "a"}, "finish_reason": "stop"},
        {"message": {"content": "b"}, "finish_reason": "stop"},
        expected=2,
    )
    assert tracker.end() is None
    assert tracker.texts == {0: "a", 1: "b"}


def test_content_in_parts_is_text() -> None:
    """Some servers send content as a list of typed parts."""
    parts = [{"type": "text", "text": "Hel"}, {"type": "image_url"}, "odd", {"type": "text", "text": "lo"}]
    tracker = StreamTracker()
    chunk = {"choices": [{"index": None, "delta": {"content": parts}, "finish_reason": "stop"}]}
    for data in (json.dumps(chunk), "[DONE]"):
        tracker.accept(ServerSentEvent(data))
    assert (code(tracker), tracker.text) == (None, "Hello")


def test_a_billion_choices_are_not_counted_out() -> None:
    """``n`` is the caller's to write; naming what is missing must not fill the memory."""
    info = whole({"message": {}, "finish_reason": "stop"}, expected=10**12).end()
    assert info is not None
    assert info.details == {"unfinished_choices": list(range(1, 101)), "expected_choices": 10**12}
