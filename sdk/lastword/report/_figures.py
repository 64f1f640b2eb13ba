"""What the page's charts are made of: the account's timeline and distributions as bars on axes.

With two accounts, before and after, each chart has a panel for each, on the same scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from lastword.report import _numbers as say
from lastword.report._account import ENDS, TOKENS, Account, Side, Tally
from lastword.report._charts import Bar, Panel, figure, grid
from lastword.report._scales import apart, decades, moments, round_up
from lastword.report._sketch import Sketch
from lastword.report._tables import NAMES, NOBODY_COUNTED

_MOST_ROWS = 24
_PARTS = 6  # bars to a decade of a distribution


def figures(accounts: Sequence[Account]) -> Iterator[Element]:
    """The charts."""
    sides = [account.main for account in accounts]
    note = "Attempts by how and when they ended, as a rate."
    yield _over_time(sides, ENDS, 0, "How attempts ended", note, "attempt", [""] * len(sides))
    what = "Useful are those of completed answers, wasted those made for clients that left, lost those of other ends."
    tallies = [side.tally for side in sides]
    missing = [NOBODY_COUNTED if tally.made(*TOKENS) is None else "No tokens were generated." for tally in tallies]
    note = f"By when their answer ended. {what}"
    yield _over_time(sides, TOKENS, len(ENDS), "Tokens generated", note, "token", missing)
    yield _distribution(
        [tally.queue for tally in tallies],
        "Time in the queue",
        "From receipt until the engine began.",
        "queue",
        list(map(_no_queue_time, accounts)),
    )
    yield _distribution(
        [tally.generation for tally in tallies],
        "Time of generation",
        "From the first token to the last, of answers that completed.",
        "generation",
        list(map(_no_generation_time, tallies)),
    )


def _no_queue_time(account: Account) -> str:
    """Why there may be none, and what gives it."""
    if account.side == "client":
        return "Clients do not see the queue: the server's records tell."
    if not account.main.tally.admitted:
        return "No attempt was admitted."
    return (
        "No record has a queue time: the engine did not tell when it began. vLLM behind the sidecar does with "
        "--enable-per-request-metrics, and in-process always."
    )


def _no_generation_time(tally: Tally) -> str:
    if not tally.completed:
        return "No attempt completed."
    return (
        "No completed answer has a generation time: it is seen in streams, or the engine tells it, as vLLM behind the "
        "sidecar does with --enable-per-request-metrics."
    )


def _over_time(
    sides: Sequence[Side],
    names: Sequence[str],
    offset: int,
    title: str,
    note: str,
    word: str,
    missing: Sequence[str],
) -> Element:
    found = [_rates(side, offset, len(names)) for side in sides]
    shown = [name for index, name in enumerate(names) if any(bar[2][index] for bars in found for bar in bars)]
    keep = [names.index(name) for name in shown]
    most = round_up(max((sum(sums) / width for bars in found for _, width, sums in bars), default=1.0))
    panels = [
        _timed(which, bars, keep, shown, most, word, why)
        for which, bars, why in zip(_names(sides), found, missing, strict=True)
    ]
    rows = [row for which, bars in zip(_names(sides), found, strict=True) for row in _rows(which, bars, keep)]
    table = grid(("from (UTC)", *shown), rows)
    return figure(title, note, [(name, name) for name in shown], panels, table, f"{word}s per second")


def _rates(side: Side, offset: int, number: int) -> list[tuple[float, float, list[float]]]:
    """Begin, width (s) and sums of each bin."""
    width = side.timeline.width
    return [(begin, width, sums[offset : offset + number]) for begin, sums in side.timeline.bins()]


def _timed(
    which: str,
    bars: Sequence[tuple[float, float, list[float]]],
    keep: Sequence[int],
    shown: Sequence[str],
    most: float,
    word: str,
    missing: str,
) -> Panel:
    if not any(sums[index] for _, _, sums in bars for index in keep):
        return _empty(which, missing)
    first, last = bars[0][0], bars[-1][0] + bars[-1][1]
    drawn = []
    for begin, width, sums in bars:
        parts = [sums[index] for index in keep]
        told = ", ".join(f"{name} {say.count(part)}" for name, part in zip(shown, parts, strict=True) if part)
        says = f"{_clock(begin)} – {_clock(begin + width)}: {told or 'nothing'}"
        rates = tuple(part / width for part in parts)
        drawn.append(Bar((begin - first) / (last - first), width / (last - first), rates, says))
    totals = [sum(sums[index] for _, _, sums in bars) for index in keep]
    told = ", ".join(f"{say.count(total)} {name}" for name, total in zip(shown, totals, strict=True))
    says = f"{which + ': ' if which else ''}{word}s over time from {say.span(first, last)}: {told or 'none'}."
    return Panel(which, drawn, moments(first, last), most, says)


def _empty(which: str, missing: str) -> Panel:
    return Panel(which, (), (), 1.0, f"{which + ': ' if which else ''}{missing}")


def _rows(which: str, bars: Sequence[tuple[float, float, list[float]]], keep: Sequence[int]) -> Iterator[list[str]]:
    """The bins, several together, so that a table stays short."""
    together = math.ceil(len(bars) / _MOST_ROWS) or 1
    for start in range(0, len(bars), together):
        some = bars[start : start + together]
        sums = [sum(each[2][index] for each in some) for index in keep]
        begin = f"{say.moment(some[0][0]):%Y-%m-%d} {_clock(some[0][0])}"
        yield [f"{which} {begin}".strip(), *map(say.count, sums)]


def _distribution(sketches: Sequence[Sketch], title: str, note: str, look: str, missing: Sequence[str]) -> Element:
    found = [_decades(sketch) for sketch in sketches]
    places = [place for bars in found for place in bars]
    low = min((place // _PARTS for place in places), default=0)
    high = max((place // _PARTS + 1 for place in places), default=1)
    shares = [number / sketch.count for bars, sketch in zip(found, sketches, strict=True) for number in bars.values()]
    most = round_up(max(shares, default=0.01) * 100)
    panels, rows = [], []
    for which, bars, sketch, why in zip(_names(sketches), found, sketches, missing, strict=True):
        if not bars:
            panels.append(_empty(which, why))
            continue
        width = 1 / ((high - low) * _PARTS)
        drawn = []
        for place, number in sorted(bars.items()):
            between = f"{_bound(place)} – {_bound(place + 1)}"
            percent = say.share(number, sketch.count)
            says = f"{between}: {say.many(number, 'attempt')}, {percent}"
            drawn.append(Bar((place - low * _PARTS) * width, width, (number / sketch.count * 100,), says))
            rows.append([f"{which} {between}".strip(), say.count(number), percent])
        half, nearly = (say.milliseconds(sketch.quantile(each)) for each in (0.5, 0.99))
        told = f"half within {half}, 99 % within {nearly}"
        says = f"{which + ': ' if which else ''}{title} of {say.many(sketch.count, 'attempt')}: {told}."
        panels.append(Panel(which, drawn, apart(decades(low, high), 0.12), most, says))
    table = grid(("", "attempts", "share"), rows)
    return figure(title, note, [(title, look)], panels, table, "per cent of attempts")


def _decades(sketch: Sketch) -> dict[int, int]:
    """How many values there are in each part of a decade; what is less than 1 ms counts as that."""
    bars: dict[int, int] = {}
    for value, number in sketch.buckets():
        place = math.floor(math.log10(max(value, 1.0)) * _PARTS + 1e-9)
        bars[place] = bars.get(place, 0) + number
    return bars


def _bound(place: int) -> str:
    return say.milliseconds(10 ** (place / _PARTS)) if place else "0"


def _clock(at: float) -> str:
    shown = say.moment(at)
    return f"{shown:%H:%M:%S}" if at == int(at) else f"{shown:%H:%M:%S}.{shown.microsecond // 1000:03}"


def _names(found: Sequence[object]) -> Sequence[str]:
    return NAMES if len(found) > 1 else ("",)
