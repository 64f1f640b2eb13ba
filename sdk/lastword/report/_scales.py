"""Axes: round numbers, and moments that a clock shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from lastword.report._numbers import moment

_STEPS: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400),
    *(2 * 86400, 7 * 86400, 28 * 86400, 91 * 86400, 365 * 86400, 3650 * 86400, 36500 * 86400, 365000 * 86400),
)
MOST_TICKS: Final = 6
_ROOM: Final = 0.13  # of an axis, for a word


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis (0 to 1) and its word."""

    at: float
    word: str


def round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5, 10 … that is not less."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-9))


def heights(most: float) -> list[Tick]:
    """Ticks from nothing to ``most``, which is a round number."""
    return [Tick(share, _short(most * share)) for share in (0, 0.5, 1)]


def moments(first: float, last: float) -> list[Tick]:
    """Ticks at both ends, and at full seconds, minutes, hours, days … between (seconds since 1970)."""
    length = last - first
    if length <= 0:
        return []
    step = next((step for step in _STEPS if length / step <= MOST_TICKS), _STEPS[-1])
    places = [number * step for number in range(math.ceil(first / step), math.floor(last / step) + 1)]
    days = moment(first).date() != moment(last).date()
    fine = min(step, 1) if length < 60 else min(step, 60)
    inner = [Tick((each - first) / length, _clock(moment(each), step, days)) for each in places]
    roomy = [tick for tick in inner if _ROOM <= tick.at <= 1 - _ROOM]
    return [Tick(0, _clock(moment(first), fine, days)), *apart(roomy, _ROOM), Tick(1, _clock(moment(last), fine, days))]


def decades(low: float, high: float) -> list[Tick]:
    """Ticks at powers of ten of milliseconds on an axis from ``10**low`` to ``10**high``."""
    words = {0: "1 ms", 1: "10 ms", 2: "100 ms", 3: "1 s", 4: "10 s", 5: "100 s", 6: "1000 s"}
    return [
        Tick((each - low) / (high - low), words.get(each, f"10^{each - 3} s"))
        for each in range(math.ceil(low), math.floor(high) + 1)
    ]


def apart(ticks: list[Tick], least: float) -> list[Tick]:
    """Those that are at least so far from the one before."""
    kept = ticks[:1]
    for _, tick in pairwise(ticks):
        if tick.at - kept[-1].at >= least:
            kept.append(tick)
    return kept


def _clock(at: datetime, step: int, days: bool) -> str:
    if step >= 86400:
        return f"{at:%Y-%m-%d}"
    clock = f"{at:%H:%M:%S}" if step < 60 else f"{at:%H:%M}"
    return f"{at:%m-%d} {clock}" if days else clock


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"
