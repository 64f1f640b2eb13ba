"""The retry vectors, played against the decision itself under a virtual clock."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from lastword import _contract
from lastword._classify import ErrorInfo, classify_response, make_error
from lastword._codes import Code
from lastword._retry import GiveUp, Retry, RetryBudget, RetryPolicy, decide

VECTORS = list(_contract.vectors("retry"))
COST = 5  # of one retry, in the budget's own unit
CLOCK = 1_767_225_600.0


def test_there_are_retry_vectors() -> None:
    """The directory is found at all."""
    assert len(VECTORS) >= 14


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_decisions(vector: dict[str, Any]) -> None:
    """After each attempt the decision and the wait are those of the vector, and the call ends as it says."""
    given = vector["given"]
    policy = RetryPolicy(
        max_attempts=given["max_attempts"],
        base_delay=given["base_ms"] / 1000,
        max_delay=given.get("max_backoff_ms", 60_000) / 1000,
    )
    budget = RetryBudget(COST * given["budget"] if "budget" in given else None)
    now = 0.0
    error: ErrorInfo | None = None
    for number, attempt in enumerate(vector["attempts"], 1):
        now += attempt.get("took_ms", 0) / 1000
        error = _failure_of(attempt)
        if error is None:
            assert attempt["expect"] == {"decision": "success"}
            continue
        decision = decide(
            error,
            attempt=number,
            delivered=attempt.get("delivered", False),
            left=given["deadline_ms"] / 1000 - now if "deadline_ms" in given else math.inf,
            policy=policy,
            budget=budget,
            random=lambda: 1.0,
        )
        assert _told(decision) == attempt["expect"]
        now += decision.delay if isinstance(decision, Retry) else 0.0
    expect = vector["expect"]
    assert (error.outcome if error else "completed", error.code if error else None) == (
        expect["outcome"],
        expect["code"],
    )
    assert expect.get("elapsed_ms", round(now * 1000)) == round(now * 1000)


def _failure_of(attempt: dict[str, Any]) -> ErrorInfo | None:
    if "failure" in attempt:
        return make_error(Code(attempt["failure"]), "scripted")
    response = attempt["response"]
    body = json.dumps(response.get("body")).encode()
    return classify_response(response["status"], response.get("headers", {}), body, now=CLOCK)


def _told(decision: Retry | GiveUp) -> dict[str, Any]:
    if isinstance(decision, Retry):
        return {"decision": "retry", "delay_ms": round(decision.delay * 1000)}
    return {"decision": "give_up"}
