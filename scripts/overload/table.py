"""The result as a table: Markdown that is readable in a terminal too."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from overload.arms import Limits, arms

Columns = Sequence[Mapping[str, Any]]
"""One arm's account in each of several repetitions."""
UNKNOWN = "–"
WHOLE_RUN = ("generated_tokens", "seconds")
"""Of which the last seconds are another time in each arm, with less and less for the engine to do."""
WHILE_CALLS_CAME = ("generated_while_calls_came", "seconds_while_calls_came")
ROWS: tuple[tuple[str, Callable[[Mapping[str, Any]], float | None]], ...] = (
    ("calls offered", lambda arm: arm["offered_calls"]),
    ("attempts", lambda arm: arm["attempts"]),
    ("… of them retries", lambda arm: arm["retries"]),
    ("refused", lambda arm: arm["refused"]),
    ("admitted", lambda arm: arm["admitted"]),
    ("started by the engine", lambda arm: arm["started"]),
    ("**completed in time**", lambda arm: arm["completed_in_time"]),
    ("… before the last call came", lambda arm: arm["completed_while_calls_came"]),
    ("… within one timeout of the call", lambda arm: arm["completed_within_one_timeout"]),
    ("… within two timeouts of the call", lambda arm: arm["completed_within_two_timeouts"]),
    ("… at the first attempt", lambda arm: arm["completed_at_first_attempt"]),
    ("disconnected while queued", lambda arm: arm["disconnected_queued"]),
    ("disconnected while generating", lambda arm: arm["disconnected_generating"]),
    ("failed otherwise", lambda arm: arm["failed"]),
    ("tokens generated", lambda arm: arm["generated_tokens"]),
    ("… a second", lambda arm: None if _looked([arm]) else _pace([arm], WHOLE_RUN)),
    ("… a second while calls came", lambda arm: _pace([arm], WHILE_CALLS_CAME) if _looked([arm]) else None),
    ("… useful: in answers that came in time", lambda arm: arm["useful_tokens"]),
    ("**… wasted**", lambda arm: arm["wasted_tokens"]),
    ("… wasted, % of all", lambda arm: arm["wasted_share"] * 100),
    ("prompt tokens computed", lambda arm: arm["prefilled_tokens"]),
    ("seconds to success, p50", lambda arm: _of(arm, "seconds_to_success", "p50")),
    ("seconds to success, p95", lambda arm: _of(arm, "seconds_to_success", "p95")),
    ("ms to a refusal, p50", lambda arm: _of(arm, "seconds_to_refusal", "p50", 1000)),
    ("ms to a refusal, p95", lambda arm: _of(arm, "seconds_to_refusal", "p95", 1000)),
)


def _of(arm: Mapping[str, Any], name: str, quantile: str, factor: float = 1) -> float | None:
    spread = arm[name]
    return None if spread is None else spread[quantile] * factor


def _looked(columns: Columns) -> bool:
    """Whether all of them tell what the engine had made when the last call came."""
    return all(set(WHILE_CALLS_CAME) <= column.keys() for column in columns)


def _pace(columns: Columns, members: tuple[str, str]) -> float | None:
    """Tokens a second of all of them together."""
    tokens, seconds = (_sum(columns, member) for member in members)
    return tokens / seconds if seconds else None


def _sum(columns: Columns, member: str) -> float:
    return float(sum(column[member] for column in columns))


def named(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """The arms that at least one repetition has."""
    return list(dict.fromkeys(name for run in runs for name in run["arms"]))


def words(result: Mapping[str, Any]) -> str:
    """What was measured with what, in a sentence or two."""
    capacity, limits = result["capacity"], result["limits"]
    seeds = ", ".join(str(run["seed"]) for run in result["runs"])
    before = [arm["calls_per_second_before"] for run in result["runs"] for arm in run["arms"].values()]
    return (
        f"{result['machine']}; vLLM {result['versions']['vllm']} on the CPU, Python {result['versions']['python']}. "
        f"The engine takes {capacity['calls_per_second']:.1f} calls/s, {result['engine_lanes']} at a time, of "
        f"{capacity['service']:.1f} s each (before the traces: {min(before):.1f} to {max(before):.1f}); offered: "
        f"{result['offered_calls_per_second']:.1f} calls/s for {result['seconds']:.0f} s, timeouts of "
        f"{result['patience']:g} s ({result['callers']}), seeds {seeds}. "
        f"Limits: {limits['inflight']} at the engine, {limits['queued']} waiting."
    )


def table(result: Mapping[str, Any]) -> str:
    """Medians over the repetitions, and least and most behind them where there are several; no row of unknowns only."""
    runs = result["runs"]
    names = named(runs)
    titles = {name: arm.title for name, arm in arms(Limits(**result["limits"])).items()}
    lines = [
        "| | " + " | ".join(titles[name] for name in names) + " |",
        "|---|" + "---:|" * len(names),
    ]
    for title, read in ROWS:
        cells = [_cell([read(run["arms"][name]) for run in runs if name in run["arms"]]) for name in names]
        if set(cells) != {UNKNOWN}:
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *verdict(result)])


def _cell(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return UNKNOWN
    middle = _number(statistics.median(known))
    return middle if len(known) == 1 else f"{middle} ({_number(min(known))} – {_number(max(known))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.1f}"


def verdict(result: Mapping[str, Any]) -> list[str]:
    """How the shim's arm compares, one line a repetition, and all of them together where there are several."""
    runs = [run for run in result["runs"] if {"bare", "shim"} <= run["arms"].keys()]
    lines = [f"seed {run['seed']}: {_compared([run])}" for run in runs]
    return lines if len(runs) < 2 else [*lines, f"all together: {_compared(runs)}"]


def _compared(runs: Sequence[Mapping[str, Any]]) -> str:
    columns = {name: [run["arms"][name] for run in runs if name in run["arms"]] for name in ("bare", "limit", "shim")}
    others = [name for name in ("bare", "limit") if len(columns[name]) == len(runs)]
    better = max(others, key=lambda name: _sum(columns[name], "completed_in_time"))
    of_whom = "the better of the others" if len(others) > 1 else "bare vLLM"
    engine = [*_paces(columns["shim"], columns[better]), *_places(columns["shim"])]
    clauses = [_completed(columns["shim"], columns[better], of_whom)]
    clauses += [f"while the engine {' and '.join(engine)}"] if engine else []
    return "; ".join([", ".join(clauses), *_saved(columns["shim"], columns["bare"])])


def _completed(shim: Columns, other: Columns, of_whom: str) -> str:
    ours, theirs = (_sum(columns, "completed_in_time") for columns in (shim, other))
    if not theirs:
        return f"with the shim {ours:,.0f} completed calls and none without it"
    return f"with the shim {ours / theirs:.2f} × the completed calls of {of_whom}"


def _paces(shim: Columns, other: Columns) -> list[str]:
    members = WHILE_CALLS_CAME if _looked([*shim, *other]) else WHOLE_RUN
    ours, theirs = _pace(shim, members), _pace(other, members)
    return [f"made {ours / theirs:.2f} × the tokens a second"] if ours is not None and theirs else []


def _places(shim: Columns) -> list[str]:
    full = [column.get("own_records", {}).get("lanes_full") for column in shim]
    return [] if None in full else [f"had all its places in use {statistics.mean(full):.1%} of the time"]


def _saved(shim: Columns, bare: Columns) -> list[str]:
    wasted = _sum(bare, "wasted_tokens")
    return [f"{1 - _sum(shim, 'wasted_tokens') / wasted:.0%} less wasted than bare"] if wasted else []
