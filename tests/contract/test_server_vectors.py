"""The server vectors need what they use, can be played against a relay, and expect what the registry allows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lastword import _codes, _contract

VECTORS = list(_contract.vectors("server"))
SEES_THE_ENGINE = {"engine_idle_within_ms"}
NEEDS_OUR_ENGINE = {"text", "texts", "tool_calls", "upstream_requests", "at_work_at_most", "first_event_within_ms"}


def calls(vector: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each call of a vector with what is expected of it."""
    yield vector["call"], vector["expect"]
    for each in vector.get("also", ()):
        yield each["call"], each["expect"]


def each_as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_there_are_enough() -> None:
    """The set is as large as was promised, and has every area."""
    assert len(VECTORS) >= 45
    assert {vector["id"].partition("/")[0] for vector in VECTORS} == {
        "good", "probe", "request", "hint", "refusal", "broken-stream", "broken-answer", "leaving", "load", "limit", "shutdown",
    }  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["id"]))
def test_needs_what_it_uses(vector: dict[str, Any]) -> None:
    """A capability that a vector uses without naming it would fail a server for what it never promised."""
    needs = set(vector.get("needs", ()))
    told = json.dumps([vector["call"], vector.get("also", [])])
    used = {
        "completions": '"completions"' in told,
        "choices": '"n": ' in told,
        "context": "$overflow" in told or "$beyond" in told,
        "deadline": "request-timeout-ms" in told,
        "admission": "load" in vector,
        "shutdown": "terminate" in vector,
    }
    assert {name for name, is_used in used.items() if is_used} == needs & set(used)
    expected = {member for _, expect in calls(vector) for member in expect}
    if expected & SEES_THE_ENGINE:
        assert needs & {"engine", "upstream"}
    if expected & NEEDS_OUR_ENGINE:
        assert "upstream" in needs


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["id"]))
def test_can_be_played_against_a_relay(vector: dict[str, Any]) -> None:
    """There is a script for the engine, one exchange for each request, so that a relay can be tested with it too."""
    script = vector.get("engine")
    if vector.get("listening") == "no":
        assert script == []
    else:
        assert script is not None
        assert len(script) == 1 + len(vector.get("also", ()))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["id"]))
def test_expects_what_the_registry_allows(vector: dict[str, Any]) -> None:
    """Expected codes exist, each goes with one of the expected statuses, and a stream says how it is to end."""
    for call, expect in calls(vector):
        statuses = set(each_as_list(expect["status"]))
        if any(status >= 400 for status in statuses) and not expect.get("empty"):
            assert "error" in expect
        for code in each_as_list(expect.get("error", {}).get("code", [])):
            allowed = set(_codes.CODES[code].http_statuses) or {500}
            told_in_stream = call["stream"] and "error" in each_as_list(expect.get("terminal", []))
            assert allowed & statuses or told_in_stream, code
        left = "disconnect" in call
        assert ("terminal" in expect) or not call["stream"] or left


def test_what_was_excluded_as_the_senders_is_covered() -> None:
    """The rules about senders have a server vector each."""
    covered = {rule for vector in VECTORS for rule in vector["requirements"]}
    senders = {"CAN-3", "ERR-1", "ERR-2", "ERR-3", "ERR-4", "HDR-4", "HDR-5", "HDR-6", "STR-14", "TMR-5", "VER-1"}
    assert senders - covered == set()
