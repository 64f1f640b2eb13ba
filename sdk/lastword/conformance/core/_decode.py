"""Plays decode vectors on the pure core: bytes in, events and a verdict out. No network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lastword._classify import make_error
from lastword._codes import PROFILES, Code
from lastword._completeness import StreamTracker, WireEnd
from lastword._errors import error_of
from lastword._outcome import Outcome
from lastword._scripted._script import Send, parse_step, segments
from lastword._sse import MAX_EVENT_BYTES, ServerSentEvent, SSEDecoder
from lastword.conformance._outcomes import Result, call_of, compare, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lastword._classify import ErrorInfo

SEGMENTATIONS: Final = ("event", "whole", "1", "7")
_WIRE: Final[Mapping[str, WireEnd]] = {"complete": "complete", "truncate": "truncated", "reset": "reset"}


def play_decode(vector: Mapping[str, Any], segmentation: str) -> list[str]:
    """Give what the core did otherwise than the vector wants; nothing if all is well."""
    limit = vector.get("max_event_bytes", MAX_EVENT_BYTES)
    decoder = SSEDecoder(max_event_bytes=limit)
    tracker = StreamTracker(
        expected_choices=vector.get("expected_choices", 1),
        profile=PROFILES[vector["profile"]] if "profile" in vector else None,
    )
    events: list[ServerSentEvent] = []
    for piece in _pieces(vector, segmentation):
        for event in decoder.feed(piece):
            events.append(event)
            tracker.accept(event)
        if decoder.too_large:
            tracker.reject(make_error(Code.MALFORMED_RESPONSE, f"an event is larger than {limit} bytes"))
            break
    info = tracker.end(_WIRE[vector["end"]], pending=decoder.pending)
    problems = compare(vector["expect"], _result(tracker, info))
    if "events" in vector["expect"]:
        problems += _compare_events(vector["expect"]["events"], events)
    return problems


def _compare_events(wanted: Sequence[Mapping[str, Any]], events: Sequence[ServerSentEvent]) -> list[str]:
    problems = [] if len(events) == len(wanted) else [f"{len(events)} events, not {len(wanted)}: {events}"]
    for number, (event, want) in enumerate(zip(events, wanted, strict=False), 1):
        # Text is compared as it is, JSON by its value.
        data = event.data if isinstance(want["data"], str) else json.loads(event.data)
        if (data, event.event) != (want["data"], want.get("event", "")):
            problems.append(f"event {number} is {event}, not {want}")
    return problems


def _pieces(vector: Mapping[str, Any], segmentation: str) -> Iterator[bytes]:
    steps = (step for raw in vector["input"] for step in parse_step(raw))
    payloads = [step.payload for step in steps if isinstance(step, Send)]
    if segmentation == "event":
        return iter(payloads)
    return segments(b"".join(payloads), segmentation)


def _result(tracker: StreamTracker, info: ErrorInfo | None) -> Result:
    partial = tracker.partial()
    error = error_of(info, partial=partial) if info is not None else None
    outcome = Outcome(
        outcome=info.outcome if info else "completed",
        code=info.code if info else None,
        category=info.category if info else None,
        retryable=info.retryable if info else False,
        message=info.message if info else "",
        finish_reasons=partial.finish_reasons,
        usage=partial.usage,
        warnings=() if info else tracker.warnings,
    )
    calls = [call_of(call) for call in tracker.tool_calls]
    return result_of(outcome, texts=partial.texts, tool_calls=calls, error=error)
