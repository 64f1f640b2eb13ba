"""What a receiver made of an answer, in the words of ``schemas/outcome.json``, and what a vector wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lastword.conformance._schemas import violations

if TYPE_CHECKING:
    from lastword._errors import LastwordError
    from lastword._outcome import Outcome, ToolCall
    from lastword.testing import ScriptedServer

Result = dict[str, Any]

_EQUAL: Final = (
    *("text", "texts", "finish_reasons", "usage"),
    *("category", "retryable", "status", "param", "request_id", "retry_after_ms"),
)


def result_of(
    outcome: Outcome,
    *,
    texts: Mapping[int, str],
    tool_calls: Sequence[Mapping[str, object]],
    error: LastwordError | None,
) -> Result:
    """Put a call's outcome, and the error that it raised if it did, into the contract's shape."""
    hint = error.retry_after if error else None
    return {
        "outcome": outcome.outcome,
        "code": outcome.code,
        "category": outcome.category,
        "retryable": outcome.retryable,
        "message": outcome.message,
        "request_id": outcome.request_id,
        "status": error.status if error else None,
        "param": error.param if error else None,
        "retry_after_ms": None if hint is None else round(hint * 1000),
        "origin": error.origin if error else None,
        "details": dict(error.details) if error else {},
        "text": texts.get(0, ""),
        "texts": by_name(texts),
        "finish_reasons": by_name(outcome.finish_reasons),
        "tool_calls": [dict(call) for call in tool_calls],
        "usage": None if outcome.usage is None else dict(outcome.usage),
        "warnings": list(outcome.warnings),
    }


def by_name(values: Mapping[int, Any]) -> dict[str, Any]:
    """Give a map of choices the string keys that JSON has."""
    return {str(index): value for index, value in values.items()}


def call_of(call: ToolCall) -> dict[str, object]:
    """Give a tool call in the contract's shape."""
    return {"id": call.id, "name": call.name, "arguments": call.raw_arguments}


def compare(expect: Mapping[str, Any], result: Result) -> list[str]:
    """Hold a result against a vector's ``expect``; one sentence for each difference."""
    problems = violations("outcome", result)
    accepted = [expect["code"], *expect.get("codes_also_accepted", ())]
    if result["outcome"] != expect["outcome"]:
        problems.append(f"outcome is {result['outcome']} ({result['code']}), not {expect['outcome']}")
    if result["code"] not in accepted:
        problems.append(f"code is {result['code']}, not {' or '.join(map(str, accepted))}: {result['message']}")
    problems += [
        f"{name} is {result[name]!r}, not {expect[name]!r}"
        for name in _EQUAL
        if name in expect and result[name] != expect[name]
    ]
    for name, value in expect.get("details", {}).items():
        if result["details"].get(name) != value:
            problems.append(f"details has {name} {result['details'].get(name)!r}, not {value!r}")
    for part in expect.get("message_contains", ()):
        if part not in (result["message"] or ""):
            problems.append(f"message lacks {part!r}: {result['message']}")
    if "warnings" in expect and len(result["warnings"]) != expect["warnings"]:
        problems.append(f"warnings are {result['warnings']}, not {expect['warnings']} of them")
    if "tool_calls" in expect:
        wanted = expect["tool_calls"]
        given = [{name: call[name] for name in each} for each, call in zip(wanted, result["tool_calls"], strict=False)]
        if given != wanted or len(result["tool_calls"]) != len(wanted):
            problems.append(f"tool_calls are {result['tool_calls']}, not {wanted}")
    return problems


def compare_traffic(expect: Mapping[str, Any], server: ScriptedServer) -> list[str]:
    """Hold the server's own log against a vector's ``expect``."""
    problems = list(server.problems)
    counts = {"requests": len(server.requests), "connections": server.connections}
    problems += [
        f"the server counted {count} {name}, not {expect[name]}"
        for name, count in counts.items()
        if name in expect and count != expect[name]
    ]
    answered = zip(server.requests, server.requests[1:], strict=False)
    gaps = [(after.at - (before.ended_at or after.at)) * 1000 for before, after in answered]
    for number, (gap, wanted) in enumerate(zip(gaps, expect.get("gaps_ms", ()), strict=False), 1):
        if not wanted.get("min", 0) <= gap <= wanted.get("max", gap):
            problems.append(f"the client waited {gap:.0f} ms before retry {number}, not {wanted}")
    return problems
