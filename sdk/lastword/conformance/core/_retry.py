"""Plays retry vectors on the decision itself: answers in order, under a virtual clock and without jitter. No network."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from lastword._classify import ErrorInfo, classify_response, make_error
from lastword._codes import Code
from lastword._retry import GiveUp, Retry, RetryBudget, RetryPolicy, decide

_COST: Final = 5  # of one retry, in the budget's own unit
_CLOCK: Final = 1_767_225_600.0  # Unix time, for hints that are dates
_LONGEST_BACK_OFF: Final = 60_000  # ms, where a vector names none


def play_retry(vector: Mapping[str, Any]) -> list[str]:
    """Give what was decided otherwise than the vector wants; nothing if all is well."""
    given, expect = vector["given"], vector["expect"]
    policy = RetryPolicy(
        max_attempts=given["max_attempts"],
        base_delay=given["base_ms"] / 1000,
        max_delay=given.get("max_backoff_ms", _LONGEST_BACK_OFF) / 1000,
    )
    budget = RetryBudget(_COST * given["budget"] if "budget" in given else None)
    problems: list[str] = []
    now, error = 0.0, None
    for number, attempt in enumerate(vector["attempts"], 1):
        now += attempt.get("took_ms", 0) / 1000
        error = _failure_of(attempt)
        told: dict[str, Any] = {"decision": "success"}
        if error is not None:
            left = given["deadline_ms"] / 1000 - now if "deadline_ms" in given else math.inf
            delivered = attempt.get("delivered", False)
            decision = decide(
                error, attempt=number, delivered=delivered, left=left, policy=policy, budget=budget, random=lambda: 1.0
            )
            told = _told(decision)
            now += told.get("delay_ms", 0) / 1000
        if told != attempt["expect"]:
            problems.append(f"after attempt {number}: {told}, not {attempt['expect']}")
    ended = {
        "outcome": error.outcome if error else "completed",
        "code": error.code if error else None,
        "elapsed_ms": round(now * 1000),
    }
    wanted = {name: expect[name] for name in ended if name in expect}
    problems += [f"{name} is {ended[name]!r}, not {value!r}" for name, value in wanted.items() if ended[name] != value]
    return problems


def _failure_of(attempt: Mapping[str, Any]) -> ErrorInfo | None:
    if "failure" in attempt:
        return make_error(Code(attempt["failure"]), "scripted")
    response = attempt["response"]
    body = json.dumps(response.get("body")).encode()
    return classify_response(response["status"], response.get("headers", {}), body, now=_CLOCK)


def _told(decision: Retry | GiveUp) -> dict[str, Any]:
    if isinstance(decision, Retry):
        return {"decision": "retry", "delay_ms": round(decision.delay * 1000)}
    return {"decision": "give_up"}
