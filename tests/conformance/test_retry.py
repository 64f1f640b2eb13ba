"""The retry vectors, played against the decision itself under a virtual clock; and that the player sees a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from lastword._contract import load, vectors
from lastword.conformance.core._retry import play_retry


@pytest.mark.parametrize("vector", list(vectors("retry")), ids=lambda vector: vector["id"])
def test_vector(vector: dict[str, Any]) -> None:
    problems = play_retry(vector)
    assert not problems, "\n".join([vector["description"], *problems])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ({"decision": "retry", "delay_ms": 501}, "after attempt 1: {'decision': 'retry', 'delay_ms': 500}, not"),
        (
            {"decision": "give_up"},
            "after attempt 1: {'decision': 'retry', 'delay_ms': 500}, not {'decision': 'give_up'}",
        ),
        ({"decision": "success"}, "after attempt 1: "),
    ],
)
def test_another_decision_is_a_problem(spoil: dict[str, Any], said: str) -> None:
    vector = load("vectors/retry/decision.once.json")
    vector["attempts"][0]["expect"] = spoil
    (problem,) = play_retry(vector)
    assert problem.startswith(said)


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("outcome", "completed", "outcome is 'failed', not 'completed'"),
        ("code", None, "code is 'engine_unavailable', not None"),
        ("elapsed_ms", 499, "elapsed_ms is 500, not 499"),
    ],
)
def test_another_end_is_a_problem(member: str, value: object, said: str) -> None:
    vector = load("vectors/retry/decision.once.json")
    vector["expect"][member] = value
    assert play_retry(vector) == [said]
