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
_ALIKE = 4  # times as long as the other: what is shorter than that is lost on the same axis
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
    found, length, lengths = _bins(sides, offset, len(names))
    shown = [name for index, name in enumerate(names) if any(bar[2][index] for bars in found for bar in bars)]
    keep = [names.index(name) for name in shown]
    most = round_up(max((sum(sums) / width for bars in found for _, width, sums in bars), default=1.0))
    panels = [
        _timed(which, bars, keep, shown, most, word, why, long)
        for which, bars, why, long in zip(_names(sides), found, missing, length, strict=True)
    ]
    rows = [row for which, bars in zip(_names(sides), found, strict=True) for row in _rows(which, bars, keep)]
    table = grid(("from (UTC)", *shown), rows)
    series = [(name, name) for name in shown]
    return figure(title, f"{note}{lengths}", series, panels, table, f"{word}s per second, times in UTC")


def _bins(
    sides: Sequence[Side], offset: int, number: int
) -> tuple[list[list[tuple[float, float, list[float]]]], list[float], str]:
    """Begin, width (s) and sums of each side's bins, how long each axis is (s), and a sentence on that.

    Of two sides both axes are as long as the longer one, unless the other would be lost on that.
    """
    widths = [side.timeline.readable(side.count) for side in sides]
    found = [side.timeline.wider(width) for side, width in zip(sides, widths, strict=True)]
    lengths = [bars[-1][0] + bars[-1][1] - bars[0][0] if bars else 0.0 for bars in found]
    told = ""
    if len(sides) > 1 and max(lengths) <= _ALIKE * min(lengths):
        found = [side.timeline.wider(max(widths)) for side in sides]
        lengths = [max(lengths)] * len(sides)
        told = f" Both axes are {say.seconds(lengths[0])} long, each from its own beginning."
    elif len(sides) > 1:
        told = " The axes differ in length: " + ", ".join(
            f"{name} {say.seconds(length)}" for name, length in zip(NAMES, lengths, strict=True)
        )
        told += "."
    cut = [[(begin, width, sums[offset : offset + number]) for begin, width, sums in bars] for bars in found]
    return cut, lengths, told


def _timed(
    which: str,
    bars: Sequence[tuple[float, float, list[float]]],
    keep: Sequence[int],
    shown: Sequence[str],
    most: float,
    word: str,
    missing: str,
    length: float,
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
        drawn.append(Bar((begin - first) / length, width / length, rates, says))
    totals = [sum(sums[index] for _, _, sums in bars) for index in keep]
    told = ", ".join(f"{say.count(total)} {name}" for name, total in zip(shown, totals, strict=True))
    says = f"{which + ': ' if which else ''}{word}s over time from {say.span(first, last)}: {told or 'none'}."
    return Panel(which, drawn, moments(first, first + length), most, says)


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
    low = min((place if place < 0 else place // _PARTS * _PARTS for place in places), default=0)
    high = max(place // _PARTS * _PARTS + _PARTS for place in [*places, 0])
    shares = [number / sketch.count for bars, sketch in zip(found, sketches, strict=True) for number in bars.values()]
    most = round_up(max(shares, default=0.01) * 100)
    panels, rows = [], []
    for which, bars, sketch, why in zip(_names(sketches), found, sketches, missing, strict=True):
        if not bars:
            panels.append(_empty(which, why))
            continue
        width = 1 / (high - low)
        drawn = []
        for place, number in sorted(bars.items()):
            between = f"{_bound(place)} – {_bound(place + 1)}" if place >= 0 else f"under {_bound(0)}"
            percent = say.share(number, sketch.count)
            says = f"{between}: {say.many(number, 'attempt')}, {percent}"
            drawn.append(Bar((place - low) * width, width, (number / sketch.count * 100,), says))
            rows.append([f"{which} {between}".strip(), say.count(number), percent])
        half, nearly = (sketch.quantile(each) or 0.0 for each in (0.5, 0.99))
        told = f"half within {say.milliseconds(half)}, 99 % within {say.milliseconds(nearly)}"
        line = (_place(half) + 0.5 if half < 1 else math.log10(half) * _PARTS) - low
        says = f"{which + ': ' if which else ''}{title} of {say.many(sketch.count, 'attempt')}: {told}."
        ticks = apart(decades(low / _PARTS, high / _PARTS), 0.12)
        sentence = f"{told[0].upper()}{told[1:]}; the line is at half."
        panels.append(Panel(which, drawn, ticks, most, says, line * width, sentence))
    table = grid(("", "attempts", "share"), rows)
    return figure(title, note, [(title, look)], panels, table, "per cent of attempts")


def _decades(sketch: Sketch) -> dict[int, int]:
    """How many values there are in each part of a decade."""
    bars: dict[int, int] = {}
    for value, number in sketch.buckets():
        place = _place(value)
        bars[place] = bars.get(place, 0) + number
    return bars


def _place(value: float) -> int:
    """The part of a decade from 1 ms on; −1 for all that is less."""
    return math.floor(math.log10(value) * _PARTS + 1e-9) if value >= 1 else -1


def _bound(place: int) -> str:
    return say.milliseconds(10 ** (place / _PARTS))


def _clock(at: float) -> str:
    shown = say.moment(at)
    return f"{shown:%H:%M:%S}" if at == int(at) else f"{shown:%H:%M:%S}.{shown.microsecond // 1000:03}"


def _names(found: Sequence[object]) -> Sequence[str]:
    return NAMES if len(found) > 1 else ("",)
