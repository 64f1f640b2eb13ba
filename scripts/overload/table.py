"""The result as a table: Markdown that is readable in a terminal too."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from overload.arms import Limits, arms

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
    ("… a second", lambda arm: arm["generated_tokens"] / arm["seconds"]),
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
    """Medians over the repetitions, and least and most behind them where there are several."""
    runs = result["runs"]
    names = list(runs[0]["arms"])
    titles = {name: arm.title for name, arm in arms(Limits(**result["limits"])).items()}
    lines = [
        "| | " + " | ".join(titles[name] for name in names) + " |",
        "|---|" + "---:|" * len(names),
    ]
    for title, read in ROWS:
        cells = [_cell([read(run["arms"][name]) for run in runs]) for name in names]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *verdict(result)])


def _cell(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
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
    def of(arm: str, member: str) -> float:
        return float(sum(run["arms"][arm][member] for run in runs))

    others = [name for name in ("bare", "limit") if all(name in run["arms"] for run in runs)]
    better = max(others, key=lambda name: of(name, "completed_in_time"))
    pace = {name: of(name, "generated_tokens") / of(name, "seconds") for name in (better, "shim")}
    wasted = of("bare", "wasted_tokens")
    full = statistics.mean(run["arms"]["shim"]["own_records"]["lanes_full"] for run in runs)
    saved = 1 - of("shim", "wasted_tokens") / wasted if wasted else 0.0
    return (
        f"with the shim {of('shim', 'completed_in_time') / of(better, 'completed_in_time'):.2f} × the completed calls of "
        f"the better of the others, while the engine made {pace['shim'] / pace[better]:.2f} × the tokens a second and had "
        f"all its places in use {full:.1%} of the time; {saved:.0%} less wasted than bare"
    )
