"""Numbers as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def count(number: float) -> str:
    """``12,408``."""
    return f"{number:,.0f}"


def tokens(number: float | None, unknown: str = "not counted") -> str:
    """``2,902``; ``unknown`` where nobody has counted them."""
    return unknown if number is None else count(number)


def many(number: float, word: str) -> str:
    """``1 attempt``, ``12 attempts``."""
    return f"{count(number)} {word}{'' if round(number) == 1 else 's'}"


def share(part: float | None, whole: float | None) -> str:
    """``2.5 %``; nothing where there is no whole, or one is unknown."""
    return percent(part / whole) if whole and part is not None else ""


def percent(value: float | None) -> str:
    """``2.5 %``, and never 100 % for what is not all of it, nor 0 % for what is something."""
    if value is None:
        return "–"
    text = f"{value * 100:.1f}"
    if text == "100.0" and value < 1:
        text = "99.9"
    elif text == "0.0" and value > 0:
        text = "< 0.1"
    return f"{text.removesuffix('.0') if value in (0, 1) else text} %"


def milliseconds(value: float | None) -> str:
    """``3.1 ms``, ``912 ms``, ``12.4 s``, ``7 min 5 s``."""
    if value is None:
        return "–"
    if value < 9.95:
        return f"{value:.1f} ms"
    if value < 999.5:
        return f"{value:.0f} ms"
    return seconds(value / 1000)


def seconds(value: float) -> str:
    """``0.4 s``, ``12.4 s``, ``7 min 5 s``, ``5 h 41 min``, ``3 d 2 h``."""
    if value < 99.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    whole = round(value / 60)
    if whole < 48 * 60:
        return f"{whole // 60} h {whole % 60} min"
    return f"{whole // 1440} d {whole % 1440 // 60} h"


def rate(value: float | None) -> str:
    """A number per second, to three digits."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def change(before: float | None, after: float | None) -> str:
    """``−80.0 %``, ``+12.3 %``, ``×42``; ``=`` where nothing changed, ``from 0`` where no ratio tells it."""
    if before is None or after is None:
        return ""
    if before == after:
        return "="
    if not before:
        return "from 0"
    ratio = after / before
    if ratio >= 10:
        return f"×{ratio:,.0f}"
    return f"{'+' if ratio > 1 else '−'}{abs(ratio - 1) * 100:.1f} %"


def points(before: float | None, after: float | None) -> str:
    """The difference of two shares in percentage points."""
    if before is None or after is None:
        return ""
    difference = (after - before) * 100
    return "=" if abs(difference) < 0.05 else f"{'+' if difference > 0 else '−'}{abs(difference):.1f} points"


def moment(at: float) -> datetime:
    """Seconds since 1970 as a time in UTC; what the calendar does not reach is its end."""
    try:
        return datetime.fromtimestamp(at, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC) if at > 0 else datetime.min.replace(tzinfo=UTC)


def span(first: float | None, last: float | None) -> str:
    """``2026-01-01 18:00:03 – 23:41:10 UTC (5 h 41 min)``."""
    if first is None or last is None:
        return ""
    start, end = moment(first), moment(last)
    shown = f"{end:%H:%M:%S}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"{start:%Y-%m-%d %H:%M:%S} – {shown} UTC ({seconds(last - first)})"
