"""How a round is judged: each imbalance of records, metrics and the process is a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from soak.balance import of_memory, of_metrics, of_process, of_records
from soak.streams import Plan, plans

PLANS = [Plan("a"), Plan("b", leaves_after=3), Plan("c", leaves_after=0)]


def record(name: str, **members: Any) -> dict[str, Any]:
    whole = {
        "request_id": name,
        "outcome": "completed",
        "error_code": None,
        "client_disconnected": False,
        "disconnect_phase": None,
        "wasted": False,
        "completion_tokens": 10,
        "queue_time_ms": 2.0,
        "generation_time_ms": 30.0,
    }
    return {**whole, **members}


def left(name: str, phase: str, tokens: int) -> dict[str, Any]:
    members: dict[str, Any] = {"outcome": "cancelled", "error_code": "client_disconnected"}
    members |= {"client_disconnected": True, "disconnect_phase": phase}
    return record(name, **members, wasted=bool(tokens), completion_tokens=tokens)


RECORDS = [record("a"), left("b", "generating", 4), left("c", "queued", 0)]
BEFORE = 'lastword_requests_total{outcome="completed",code="none"} 5.0\n'
AFTER = """\
lastword_requests_total{outcome="completed",code="none"} 6.0
lastword_requests_total{outcome="cancelled",code="client_disconnected"} 2.0
lastword_client_disconnects_total{phase="generating"} 1.0
lastword_client_disconnects_total{phase="queued"} 1.0
lastword_wasted_tokens_total 4.0
lastword_wasted_seconds_total 0.2
lastword_queue_time_seconds_count 3.0
lastword_queue_time_seconds_sum 0.006
lastword_generation_time_seconds_count 3.0
lastword_generation_time_seconds_sum 0.09
"""


def test_a_round_that_adds_up_has_nothing_said_of_it() -> None:
    assert list(of_records(PLANS, RECORDS)) == []
    assert list(of_metrics(RECORDS, BEFORE, AFTER, generated=14)) == []


@pytest.mark.parametrize(
    "records",
    [
        RECORDS[:2],
        [*RECORDS, record("a")],
        [RECORDS[0], record("b"), RECORDS[2]],
        [*RECORDS[:2], left("c", "generating", 1)],
    ],
)
def test_a_record_too_few_too_many_or_of_another_ending_is_told(records: list[dict[str, Any]]) -> None:
    assert list(of_records(PLANS, records))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('code="none"} 6.0', 'code="none"} 7.0'),
        ('phase="queued"} 1.0', 'phase="queued"} 0.0'),
        ("tokens_total 4.0", "tokens_total 5.0"),
        ("time_seconds_sum 0.09", "time_seconds_sum 0.0901"),
        ("lastword_wasted_seconds", "lastword_records_dropped_total 1.0\nlastword_wasted_seconds"),
    ],
)
def test_a_metric_that_says_something_else_than_the_records_is_told(old: str, new: str) -> None:
    assert len(list(of_metrics(RECORDS, BEFORE, AFTER.replace(old, new), generated=14))) == 1


def test_tokens_that_no_record_has_are_told() -> None:
    assert list(of_metrics(RECORDS, BEFORE, AFTER, generated=15)) == ["the engine made 15 tokens, the records have 14"]


def test_what_is_left_in_the_process_is_told_and_so_is_growth_after_the_second_round() -> None:
    look = {
        "open": 0,
        "inside": 0,
        "waiting": 0,
        "running": 0,
        "tasks": 3,
        "descriptors": 9,
        "objects": 100,
        "resident": 1000,
    }
    assert list(of_process(look, look)) == []
    assert len(list(of_process({**look, "waiting": 1, "tasks": 4}, look))) == 2
    grown = {**look, "objects": 111, "resident": 1101}
    assert list(of_memory([look, grown, grown], objects=10, resident=100)) == []
    assert len(list(of_memory([look, look, grown], objects=10, resident=100))) == 2


def test_a_third_leave_and_the_seed_says_who() -> None:
    every = plans(7, 1, streams=300, tokens=10)
    after = [plan.leaves_after for plan in every if plan.leaves_after is not None]
    assert len(after) == 100
    assert (min(after), max(after)) == (0, 10)
    assert every == plans(7, 1, streams=300, tokens=10) != plans(8, 1, streams=300, tokens=10)
