"""What the schemas of bodies, events, outcomes and records accept, and what they refuse."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.contract.conftest import ROOT, Errors

SPEC = (ROOT / "contract/SPEC.md").read_text(encoding="utf-8")
EXAMPLES: dict[str, Any] = {
    name: json.loads(text) for name, text in re.findall(r"^```json (\S+)\n(.*?)^```", SPEC, re.MULTILINE | re.DOTALL)
}


def test_error_schema_knows_the_registry(registry: dict[str, Any], errors: Errors, error_body: dict[str, Any]) -> None:
    """The error schema accepts each code with its own category, and with no other."""
    for row in registry["codes"]:
        for category in ("fixable", "retryable", "cancelled"):
            error_body["error"] |= {
                "code": row["code"], "category": category, "retryable": category == "retryable"
            }  # fmt: skip
            assert (errors("error", error_body) == []) == (category == row["category"]), row["code"]


def test_only_a_retryable_category_may_be_retryable(errors: Errors, error_body: dict[str, Any]) -> None:
    """A sender may take a retryable error back, and never promise that a retry cures another one."""
    error_body["error"] |= {"code": "queue_overloaded", "category": "retryable", "retryable": False}
    assert errors("error", error_body) == []
    error_body["error"] |= {"code": "invalid_request_error", "category": "fixable", "retryable": True}
    assert errors("error", error_body) != []


@pytest.mark.parametrize(
    ("member", "value"),
    [("code", 400), ("category", "fatal"), ("retryable", 1), ("request_id", "a b"), ("retry_after_ms", -1),
     ("message", ""), ("contract", 1), ("origin", "moon"), ("details", None)],
)  # fmt: skip
def test_error_schema_refuses(member: str, value: object, errors: Errors, error_body: dict[str, Any]) -> None:
    """A member of the wrong kind, or one that contradicts another, is refused."""
    assert errors("error", error_body) == []
    error_body["error"][member] = value
    assert errors("error", error_body) != []


def test_error_schema_lets_unknown_members_be(errors: Errors, error_body: dict[str, Any]) -> None:
    """Bodies may get new members, and new codes, without breaking receivers."""
    error_body["error"] |= {"code": "brand_new_trouble", "x": 1}
    assert errors("error", error_body | {"trace": "t"}) == []


def test_error_events_of_responses(errors: Errors, error_body: dict[str, Any]) -> None:
    """Responses streams have error events of their own, each with the error where stock SDKs look for one."""
    error = error_body["error"]
    flat = {**error, "type": "error", "sequence_number": 0, "error": error}
    assert errors("stream-error-event", {"event": "error", "data": flat}) == []
    failed = {
        "type": "response.failed",
        "sequence_number": 7,
        "response": {"status": "failed", "error": error},
        "error": error,
    }
    assert errors("stream-error-event", {"event": "response.failed", "data": failed}) == []
    for member in failed:
        lacking = {name: value for name, value in failed.items() if name != member}
        assert errors("stream-error-event", {"event": "response.failed", "data": lacking}) != []
    assert errors("stream-error-event", {"event": "response.incomplete", "data": failed}) != []


def test_error_event_of_messages(errors: Errors, error_body: dict[str, Any]) -> None:
    """Messages streams wrap the error in Anthropic's envelope, with its words, under the event name error."""
    error = {**error_body["error"], "type": "overloaded_error"}
    data = {"type": "error", "error": error, "request_id": "req-1"}
    assert errors("stream-error-event", {"event": "error", "data": data}) == []
    assert errors("stream-error-event", {"event": "error", "data": {**data, "error": error_body["error"]}}) != []
    del data["request_id"]
    assert errors("stream-error-event", {"event": "error", "data": data}) != []


def test_chat_error_event_has_no_name(errors: Errors, error_body: dict[str, Any]) -> None:
    """On chat and completions a named error event is refused: stock clients read unnamed ones."""
    assert errors("stream-error-event", {"data": error_body}) == []
    assert errors("stream-error-event", {"event": "error", "data": error_body}) != []


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "completed"},
        {"code": None},
        {"outcome": "failed"},
        {"code": "cancelled"},
        {"outcome": "lost"},
    ],
    ids=str,
)
def test_outcome_schema_refuses_contradictions(change: dict[str, Any], errors: Errors) -> None:
    """An outcome and a code that do not belong together are refused."""
    assert errors("outcome", EXAMPLES["outcome"]) == []
    assert errors("outcome", EXAMPLES["outcome"] | change) != []


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "text"},
        {"wasted": False},
        {"http_status": 200},
        {"state": "generating"},
        {"state": "completed"},
        {"error_code": None},
        {"client_disconnected": False},
        {"received_at": "yesterday"},
        {"attempt": 0},
        {"operation": "a prompt"},
        {"completion_tokens": 0},
    ],
    ids=str,
)
def test_record_schema_refuses(change: dict[str, Any], errors: Errors) -> None:
    """A record with text in it, or one that contradicts itself, is refused."""
    assert errors("record", EXAMPLES["record"]) == []
    assert errors("record", EXAMPLES["record"] | change) != []


@pytest.mark.parametrize("member", sorted(EXAMPLES["record"].keys() - {"operation"}))
def test_record_schema_wants_every_member(member: str, errors: Errors) -> None:
    """A record leaves no member out that was there from the beginning; what is not known is null."""
    record = {name: value for name, value in EXAMPLES["record"].items() if name != member}
    assert errors("record", record) != []
