"""The account as JSON, for programs: plain numbers under names that stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lastword.report._account import ENDS, TOKENS, Account, Side, Tally
from lastword.report._numbers import moment
from lastword.report._reading import Reading
from lastword.report._sketch import Sketch


def as_json(account: Account, reading: Reading, files: Sequence[str]) -> dict[str, Any]:
    """One account.  Times of attempts are milliseconds, those of waste seconds; rates are shares of one.

    Tokens that nobody counted are null.
    """
    side = account.main
    requests = account.pairs.requests(account.side)
    return {
        "files": list(files),
        "side": account.side,
        "read": reading.read,
        "left_out": reading.left_out,
        "repeated": reading.repeated,
        "asked_for_no_work": side.others,
        "broken_lines": reading.broken,
        "unreadable": reading.unreadable,
        "from": _moment(side.first),
        "to": _moment(side.last),
        "seconds": round(side.seconds, 3),
        "useful_tokens_per_second": _rounded(side.useful_per_second),
        **_tally(side.tally),
        "codes": dict(side.tally.codes.most_common()),
        "requests": {
            "count": requests.count,
            "completed": requests.completed,
            "retried": requests.retried,
            "completed_by_a_retry": requests.saved,
            "by_attempts": {str(number): requests.by_attempts[number] for number in sorted(requests.by_attempts)},
        },
        "models": {name: _tally(tally) for name, tally in side.models.items()},
        "timeline": _timeline(side),
        "both_sides": [
            {"client": client, "server": server, "attempts": number}
            for (client, server), number in account.pairs.joined.most_common()
        ],
    }


def _tally(tally: Tally) -> dict[str, Any]:
    return {
        "received": tally.received,
        "rejected": tally.ends["rejected"],
        "admitted": tally.admitted,
        "started": tally.started,
        "completed": tally.completed,
        "disconnected_queued": tally.left_queued,
        "disconnected_generating": tally.left_generating,
        **{end: tally.ends[end] for end in ("cancelled", "failed", "incomplete")},
        "effective_completion_rate": _rounded(tally.completion_rate),
        **{f"{what}_tokens": tally.made(what) for what in TOKENS},
        "tokens_after_disconnect": None if tally.made("wasted") is None else tally.tokens_after_disconnect,
        "completed_uncounted": tally.uncounted["useful"],
        "wasted_answers": tally.wasted,
        "wasted_answers_uncounted": tally.uncounted["wasted"],
        "wasted_seconds": round(tally.wasted_seconds, 3),
        "times_ms": {
            "queue": _sketch(tally.queue),
            "first_token": _sketch(tally.first_token),
            "generation": _sketch(tally.generation),
            "total": _sketch(tally.total),
        },
    }


def _sketch(sketch: Sketch) -> dict[str, Any]:
    quantiles = {f"p{share}": _rounded(sketch.quantile(share / 100)) for share in (50, 90, 99)}
    longest = sketch.largest if sketch.count else None
    mean = sketch.total / sketch.count if sketch.count else None
    return {"count": sketch.count, **quantiles, "max": _rounded(longest), "mean": _rounded(mean)}


def _timeline(side: Side) -> dict[str, Any]:
    bins = list(side.timeline.bins())
    names = (*ENDS, *(f"{what}_tokens" for what in TOKENS))
    series: dict[str, list[int] | None] = {
        name: [int(sums[index]) for _, sums in bins] for index, name in enumerate(names)
    }
    tally = side.tally
    series |= {f"{what}_tokens": None for what in TOKENS if tally.made(what) is None}
    return {"from": _moment(bins[0][0]) if bins else None, "bin_seconds": side.timeline.width, "ended": series}


def _moment(at: float | None) -> str | None:
    return None if at is None else moment(at).isoformat().replace("+00:00", "Z")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
