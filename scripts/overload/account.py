"""The account of one arm, the same way for each: what the callers met, and what the engine's own counters say.

Pure.  Nothing of the shim's is used, so that the arm with it is measured like those without.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from overload.callers import Attempt
from overload.calls import Call

COUNTERS = {
    "generated": "vllm:generation_tokens_total",
    "prefilled": "vllm:prompt_tokens_total",
    "started": "vllm:time_to_first_token_seconds_count",
    "finished": "vllm:request_success_total",
}
"""The engine's counters that are looked at before and after; each goes up once a token, or once a request."""


def account(calls: Sequence[Call], attempts: Sequence[Attempt], engine: Mapping[str, float]) -> dict[str, Any]:
    """The table's column; ``engine`` has what each of `COUNTERS` rose by.

    ``disconnected_generating``: the engine began with them and never finished; ``disconnected_queued``: the other
    callers that left.  ``wasted_tokens``: made, and not part of an answer that came in time.
    """
    by_ending = {name: [one for one in attempts if one.ending == name] for name in ENDINGS}
    completed, refused = by_ending["completed"], by_ending["refused"]
    generating = max(round(engine["started"] - engine["finished"]), 0)
    useful = sum(one.tokens for one in completed)
    generated = round(engine["generated"])
    arrived = {call.number: call.at for call in calls}
    waits = [one.at + one.seconds - arrived[one.call] for one in completed]
    return {
        "offered_calls": len(calls),
        "attempts": len(attempts),
        "retries": sum(one.attempt > 1 for one in attempts),
        "refused": len(refused),
        "admitted": len(attempts) - len(refused),
        "started": round(engine["started"]),
        "completed_in_time": len(completed),
        "completed_while_calls_came": sum(one.at + one.seconds <= calls[-1].at for one in completed),
        "completed_within_one_timeout": sum(wait <= one.timeout for one, wait in zip(completed, waits, strict=True)),
        "completed_within_two_timeouts": sum(
            wait <= 2 * one.timeout for one, wait in zip(completed, waits, strict=True)
        ),
        "completed_at_first_attempt": sum(one.attempt == 1 for one in completed),
        "disconnected": len(by_ending["timed_out"]),
        "disconnected_queued": max(len(by_ending["timed_out"]) - generating, 0),
        "disconnected_generating": generating,
        "failed": len(by_ending["failed"]),
        "calls_without_answer": len(calls) - len(completed),
        "generated_tokens": generated,
        "useful_tokens": useful,
        "wasted_tokens": generated - useful,
        "wasted_share": round((generated - useful) / generated, 4) if generated else 0.0,
        "prefilled_tokens": round(engine["prefilled"]),
        "seconds_to_success": _spread(waits),
        "seconds_to_refusal": _spread([one.seconds for one in refused]),
        "errors": _count(one.error for one in attempts if one.error is not None),
    }


ENDINGS = ("completed", "refused", "timed_out", "failed")


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    ranked = sorted(values)
    return {
        "p50": round(statistics.median(ranked), 3),
        "p95": round(ranked[min(int(0.95 * len(ranked)), len(ranked) - 1)], 3),
    }


def _count(names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found


def own_records(records: Sequence[Mapping[str, Any]], *, lanes: int) -> dict[str, Any]:
    """What the shim's own records say of the same: beside the account, and no part of it.

    ``lanes_full``: the share of the time in which requests came that the engine had at least ``lanes`` of them at work,
    each from when it began until its last token.
    """
    gone = [record for record in records if record["client_disconnected"]]
    return {
        "records": len(records),
        "completed": sum(record["outcome"] == "completed" for record in records),
        "by_code": _count(record["error_code"] or "none" for record in records),
        "disconnected_queued": sum(record["disconnect_phase"] == "queued" for record in gone),
        "disconnected_generating": sum(record["disconnect_phase"] == "generating" for record in gone),
        "wasted_tokens": sum(
            record["completion_tokens"] or 0 for record in records if record["outcome"] != "completed"
        ),
        "tokens_after_disconnect": sum(record["tokens_after_disconnect"] or 0 for record in gone),
        "queue_time_ms": _spread(
            [record["queue_time_ms"] for record in records if record["queue_time_ms"] is not None]
        ),
        "lanes_full": _lanes_full(records, lanes),
    }


def _lanes_full(records: Sequence[Mapping[str, Any]], lanes: int) -> float:
    came = [(datetime.fromisoformat(record["received_at"]).timestamp(), record) for record in records]
    begun = [(at, record) for at, record in came if record["queue_time_ms"] is not None]
    changes = [(at + record["queue_time_ms"] / 1000, 1) for at, record in begun]
    changes += [(at + _worked_until_ms(record) / 1000, -1) for at, record in begun]
    first, last = min((at for at, _ in came), default=0.0), max((at for at, _ in came), default=0.0)
    full, at_work, since = 0.0, 0, first
    for at, change in [*sorted(changes), (last, 0)]:
        until = min(max(at, since), last)
        full += until - since if at_work >= lanes else 0.0
        at_work, since = at_work + change, until
    return round(full / (last - first), 4) if last > first else 0.0


def _worked_until_ms(record: Mapping[str, Any]) -> float:
    """From receipt to the engine's last token; where that is not known, to the answer's end, some ms later."""
    first, generation = record["time_to_first_token_ms"], record["generation_time_ms"]
    known = first is not None and generation is not None
    return float(first + generation if known else record["total_time_ms"])
