"""What a receiver made of an answer, in the words of ``schemas/outcome.json``, and what a vector wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lastword.conformance._schemas import violations

if TYPE_CHECKING:
    from lastword._errors import LastwordError
    from lastword._outcome import Outcome, ToolCall

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
    """Hold a whole result against a vector's ``expect``; one sentence for each difference."""
    return violations("outcome", result) + [sentence for _, sentence in differences(expect, result)]


def differences(expect: Mapping[str, Any], result: Result) -> Iterator[tuple[str, str]]:
    """Give each member that is not as expected, and a sentence on it. Members that ``result`` lacks are passed over."""
    accepted = [expect["code"], *expect.get("codes_also_accepted", ())]
    message = result.get("message") or ""
    if result["outcome"] != expect["outcome"]:
        yield "outcome", f"outcome is {result['outcome']} ({result['code']}), not {expect['outcome']}"
    if result["code"] not in accepted:
        said = f": {message}" if message else ""
        yield "code", f"code is {result['code']}, not {' or '.join(map(str, accepted))}{said}"
    for name in _EQUAL:
        if name in expect and name in result and result[name] != expect[name]:
            yield name, f"{name} is {result[name]!r}, not {expect[name]!r}"
    for name, value in expect.get("details", {}).items():
        if "details" in result and result["details"].get(name) != value:
            yield "details", f"details has {name} {result['details'].get(name)!r}, not {value!r}"
    for part in expect.get("message_contains", ()):
        if "message" in result and part not in message:
            yield "message", f"message lacks {part!r}: {message}"
    if "warnings" in expect and "warnings" in result and len(result["warnings"]) != expect["warnings"]:
        yield "warnings", f"warnings are {result['warnings']}, not {expect['warnings']} of them"
    if "tool_calls" in expect and "tool_calls" in result:
        wanted, calls = expect["tool_calls"], result["tool_calls"]
        given = [{name: call.get(name) for name in each} for each, call in zip(wanted, calls, strict=False)]
        if given != wanted or len(calls) != len(wanted):
            yield "tool_calls", f"tool_calls are {calls}, not {wanted}"


def unreported(expect: Mapping[str, Any], result: Result) -> tuple[str, ...]:
    """The members that a vector expects and a client has no notion of, so that they cannot be compared."""
    named = {"message_contains": "message"}
    members = (*_EQUAL, "details", "message_contains", "warnings", "tool_calls")
    return tuple(named.get(name, name) for name in members if name in expect and named.get(name, name) not in result)
