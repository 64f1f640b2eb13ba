"""The experiment's arithmetic: the calls drawn, the limits chosen, the account made, the table shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from overload import keeping
from overload.account import account, own_records
from overload.arms import LANES, Limits, arms, choose
from overload.callers import Attempt
from overload.calls import Call, draw
from overload.capacity import Capacity
from overload.chart import chart
from overload.table import table, verdict


def test_the_same_seed_asks_for_the_same_at_every_rate() -> None:
    slow, fast = (draw(3, rate=rate, seconds=50, patience=8) for rate in (2, 4))
    assert len(fast) > len(slow) > 60
    for first, second in zip(slow, fast, strict=False):
        assert (first.prompt_tokens, first.answer_tokens, first.stream) == (
            second.prompt_tokens,
            second.answer_tokens,
            second.stream,
        )
        assert first.at == pytest.approx(2 * second.at)


def test_calls_come_at_the_rate_and_callers_of_a_kind_have_its_timeouts() -> None:
    calls = draw(1, rate=20, seconds=100, patience=10, callers="mixed")
    assert len(calls) == pytest.approx(2000, rel=0.1)
    assert {call.timeout for call in calls} == {6, 10, 16}
    assert {call.timeout for call in draw(1, rate=20, seconds=10, patience=10)} == {10}


def test_a_trace_that_was_kept_is_the_same_and_a_broken_one_is_named(tmp_path: Path) -> None:
    calls = draw(1, rate=5, seconds=10, patience=8)
    keeping.keep_trace(tmp_path, 1, calls)
    path = tmp_path / "trace-1.jsonl.gz"
    assert keeping.load_trace(path) == calls
    keeping._write(path, [{"number": 1}])
    with pytest.raises(ValueError, match=r"trace-1.jsonl.gz, line 1 is no call"):
        keeping.load_trace(path)


def test_the_queue_is_as_long_as_the_engine_begins_with_in_a_third_of_the_patience() -> None:
    """Five calls a second and 12 s: twenty, one of which stands at the engine."""
    assert choose(Capacity(5, 2000, 2), patience=12, spare=1) == Limits(LANES + 1, 19)
    assert choose(Capacity(5, 2000, 2), patience=0.3, spare=1).queued == 1
    assert arms(Limits(9, 19))["limit"].args == ("--max-num-queued-reqs", "28")


def attempt(call: int, number: int, ending: str, **members: Any) -> Attempt:
    return Attempt(call, number, at=1.0 + number, stream=True, timeout=8, ending=ending, **members)


def test_the_account_adds_up() -> None:
    """Two calls: one is refused and then answered, the other times out at the engine and in the queue."""
    calls = [Call(number, number / 2, True, 10, 100, 8, 0) for number in range(2)]
    attempts = [
        attempt(0, 1, "refused", seconds=0.01, error="queue_overloaded"),
        attempt(0, 2, "completed", seconds=2.0, tokens=100),
        attempt(1, 1, "timed_out", seconds=8.0),
        attempt(1, 2, "timed_out", seconds=8.0),
    ]
    engine = {"generated": 140.0, "prefilled": 20.0, "started": 2.0, "finished": 1.0}
    column = account(calls, attempts, engine)
    expected = {
        "offered_calls": 2,
        "attempts": 4,
        "retries": 2,
        "refused": 1,
        "admitted": 3,
        "started": 2,
        "completed_in_time": 1,
        "completed_at_first_attempt": 0,
        "calls_without_answer": 1,
        "failed": 0,
        "disconnected": 2,
        "disconnected_queued": 1,
        "disconnected_generating": 1,
        "generated_tokens": 140,
        "useful_tokens": 100,
        "wasted_tokens": 40,
        "wasted_share": 0.2857,
        "errors": {"queue_overloaded": 1},
    }
    assert {name: column[name] for name in expected} == expected
    assert column["seconds_to_success"] == {"p50": 5.0, "p95": 5.0}
    assert column["seconds_to_refusal"] == {"p50": 0.01, "p95": 0.01}


def column(completed: int, wasted: int) -> dict[str, Any]:
    attempts = [attempt(number, 1, "completed", seconds=1.0, tokens=100) for number in range(completed)]
    calls = [Call(number, 0.0, True, 10, 100, 8, 0) for number in range(completed)]
    engine = {"generated": 100.0 * completed + wasted, "prefilled": 0, "started": completed, "finished": completed}
    return {**account(calls, attempts, engine), "seconds": 10.0, "own_records": {"lanes_full": 0.987}}


def result_of(*found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    runs = [{"seed": number, "arms": one} for number, one in enumerate(found, 1)]
    return {"limits": {"inflight": 9, "queued": 19}, "callers": "alike", "runs": runs}


def test_the_table_has_a_column_an_arm_and_says_how_the_shim_compares() -> None:
    found = {"bare": column(50, 1000), "limit": column(80, 100), "shim": column(88, 50)}
    result = result_of(found)
    (line,) = verdict(result)
    assert line == (
        "seed 1: with the shim 1.10 × the completed calls of the better of the others, while the engine made 1.09 × the "
        "tokens a second and had all its places in use 98.7% of the time; 95% less wasted than bare"
    )
    lines = table(result).splitlines()
    assert lines[0] == "| | bare vLLM | vLLM, --max-num-queued-reqs 28 | vLLM with the shim |"
    assert "| **completed in time** | 50 | 80 | 88 |" in lines
    assert "| … a second | 600 | 810 | 885 |" in lines
    result = result_of(found, {**found, "shim": column(90, 50)})
    assert [line.partition(" the completed")[0] for line in verdict(result)] == [
        "seed 1: with the shim 1.10 ×",
        "seed 2: with the shim 1.12 ×",
        "all together: with the shim 1.11 ×",
    ]
    assert "| **completed in time** | 50 (50 – 50) | 80 (80 – 80) | 89 (88 – 90) |" in table(result).splitlines()


def test_a_pace_is_that_while_calls_came_where_every_arm_that_is_compared_tells_it() -> None:
    """Each arm has the same one over its whole run, since only the time after the last call differs."""

    def looked(tokens: float) -> dict[str, Any]:
        return {**column(80, 0), "generated_while_calls_came": tokens, "seconds_while_calls_came": 8.0}

    found = {"bare": looked(7200), "limit": looked(6000), "shim": looked(6400)}
    lines = table(result_of(found)).splitlines()
    assert "| … a second while calls came | 900 | 750 | 800 |" in lines
    assert not [line for line in lines if line.startswith("| … a second |")]
    assert "0.89 × the tokens a second" in lines[-1]
    (line,) = verdict(result_of({**found, "shim": column(80, 0)}))
    assert "1.00 × the tokens a second" in line


def test_what_nobody_knows_is_left_out_of_the_verdict() -> None:
    """No share of the places in use, nothing completed without the shim, nothing wasted by bare vLLM, no pace."""
    bare, shim = column(0, 0), column(88, 0)
    del shim["own_records"]
    assert verdict(result_of({"bare": bare, "limit": bare, "shim": shim})) == [
        "seed 1: with the shim 88 completed calls and none without it"
    ]
    shim["own_records"] = {}
    (line,) = verdict(result_of({"bare": column(44, 100), "shim": shim}))
    assert line == (
        "seed 1: with the shim 2.00 × the completed calls of bare vLLM, while the engine made 1.96 × the tokens a second; "
        "100% less wasted than bare"
    )


def test_an_arm_may_be_missing_in_a_repetition() -> None:
    both = {"bare": column(40, 100), "shim": column(88, 50)}
    result = result_of(both, {"bare": column(50, 100), "limit": column(80, 0), "shim": column(88, 50)})
    assert "| **completed in time** | 45 (40 – 50) | 88 (88 – 88) | 80 |" in table(result).splitlines()
    assert [line.partition(",")[0] for line in verdict(result)] == [
        "seed 1: with the shim 2.20 × the completed calls of bare vLLM",
        "seed 2: with the shim 1.10 × the completed calls of the better of the others",
        "all together: with the shim 1.96 × the completed calls of bare vLLM",
    ]
    assert "80" in chart(result)


def test_the_shims_records_tell_how_long_all_places_were_in_use() -> None:
    """Two places: one request has the first from 0 to 8 s, one the other from 2 to 6 s; the last is refused at 10 s.

    Where the engine's last token is known, a place is free from then on: at 7 s, and at 5.5 s.
    """

    def record(second: float, queue: float | None, total: float, generation: float | None = None) -> dict[str, Any]:
        known = {"outcome": "completed", "error_code": None, "client_disconnected": False, "disconnect_phase": None}
        times = {"received_at": f"2026-01-01T00:00:{second:09.6f}Z", "queue_time_ms": queue, "total_time_ms": total}
        times |= {"time_to_first_token_ms": queue, "generation_time_ms": generation}
        return {**known, **times, "tokens_after_disconnect": None, "completion_tokens": 1}

    records = [record(0, 0, 8000), record(1, 1000, 5000), record(10, None, 1)]
    assert own_records(records, lanes=2)["lanes_full"] == 0.4
    assert own_records(records, lanes=1)["lanes_full"] == 0.8
    assert own_records(records[:1], lanes=1)["lanes_full"] == 0.0
    assert own_records([], lanes=1)["lanes_full"] == 0.0
    told = [record(0, 0, 8000, 7000), record(1, 1000, 5000, 3500), record(10, None, 1)]
    assert own_records(told, lanes=1)["lanes_full"] == 0.7
    assert own_records(told, lanes=2)["lanes_full"] == 0.35
