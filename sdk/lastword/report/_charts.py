"""Charts as inline SVG.  Their text is as large on a telephone as on a wall: nothing is scaled, places are percentages.

Each is a figure with a legend, a sentence for those who hear it, a word at each bar, and the numbers as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from lastword.report._scales import Tick, heights
from lastword.report._tags import scroll, tag


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: where it stands (0 to 1), its parts in the order of the series, and what it says when pointed at."""

    start: float
    width: float
    parts: tuple[float, ...]
    says: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart's data; ``most`` is the height of its axis, ``says`` a sentence instead of it.

    Without bars there is no chart, and ``says`` is all there is to see.  ``line`` is a place that is marked (0 to 1), and
    ``told`` a sentence that everybody sees.
    """

    name: str
    bars: Sequence[Bar]
    ticks: Sequence[Tick]
    most: float
    says: str
    line: float | None = None
    told: str = ""


def figure(
    title: str, note: str, series: Sequence[tuple[str, str]], panels: Iterable[Panel], table: Element, unit: str
) -> Element:
    """A figure of one panel or several one above the other; ``series`` are names with their classes."""
    legend = [
        tag("li", _swatch(look), " ", name) for name, look in (series if len(series) > 1 else ())
    ]  # of one series the title says what it is
    panels = list(panels)
    any_bars = any(panel.bars for panel in panels)
    drawn = [_panel(panel, [look for _, look in series], unit) for panel in panels]
    return tag(
        "figure",
        tag("figcaption", tag("h3", title), tag("p", note)),
        tag("ul", *legend, class_="legend") if legend else None,
        *drawn,
        tag("details", tag("summary", "The same as a table"), scroll(table, f"{title}, as a table"))
        if any_bars
        else None,
        end="\n",
    )


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Element:
    """A table of numbers with a name before each row."""
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell, class_="number") for cell in row[1:]))
        for row in rows
    ]
    return tag(
        "table",
        tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head))),
        tag("tbody", *body),
    )


def patterns() -> Element:
    """What some series are filled with, so that they can be told apart without colours; once in a page."""
    hatch = tag(
        "pattern",
        tag("rect", width="6", height="6", class_="under"),
        tag("path", d="M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", class_="over"),
        id="hatch",
        width="6",
        height="6",
        patternUnits="userSpaceOnUse",
    )
    dots = tag(
        "pattern",
        tag("rect", width="5", height="5", class_="under"),
        tag("circle", cx="2.5", cy="2.5", r="1.2", class_="over"),
        id="dots",
        width="5",
        height="5",
        patternUnits="userSpaceOnUse",
    )
    return tag("svg", tag("defs", hatch, dots), class_="patterns", aria_hidden="true", width="0", height="0", end="\n")


def _swatch(look: str) -> Element:
    square = tag("rect", width="100%", height="100%", class_=look)
    return tag("svg", square, class_="swatch", aria_hidden="true")


def _panel(panel: Panel, looks: Sequence[str], unit: str) -> Element:
    if not panel.bars:
        return tag("p", panel.says, class_="empty", end="\n")
    up = heights(panel.most)
    lines = [tag("line", x1="0", x2="100%", y1=_percent(1 - tick.at), y2=_percent(1 - tick.at)) for tick in up]
    plot = tag(
        "svg",
        tag("title", panel.says),
        tag("g", *lines, class_="lines"),
        *(_bar(bar, looks, panel.most) for bar in panel.bars),
        _mark(panel.line) if panel.line is not None else None,
        class_="plot",
        role="img",
        aria_label=panel.says,
    )
    names = [tag("text", tick.word, x="100%", y=_percent(1 - tick.at), class_=_edge(tick.at)) for tick in up]
    below = [tag("text", tick.word, x=_percent(tick.at), y="1em", class_=_edge(tick.at)) for tick in panel.ticks]
    return tag(
        "div",
        tag(
            "p", f"{panel.name}: {unit}" if panel.name else unit, f". {panel.told}" if panel.told else "", class_="unit"
        ),
        tag("svg", *names, class_="up", aria_hidden="true"),
        plot,
        tag("svg", *below, class_="along", aria_hidden="true"),
        class_="chart",
        end="\n",
    )


def _mark(at: float) -> Element:
    return tag("line", x1=_percent(at), x2=_percent(at), y1="0", y2="100%", class_="mark")


def _bar(bar: Bar, looks: Sequence[str], most: float) -> Element:
    rects, below = [], 0.0
    for part, look in zip(bar.parts, looks, strict=True):
        if part > 0:
            below += part
            rects.append(
                tag(
                    "rect",
                    x=_percent(bar.start),
                    width=_percent(bar.width),
                    y=_percent(1 - below / most),
                    height=_percent(part / most),
                    class_=look,
                )
            )
    whole = tag("rect", x=_percent(bar.start), width=_percent(bar.width), y="0", height="100%", class_="hit")
    return tag("g", tag("title", bar.says), *rects, whole)


def _percent(share: float) -> str:
    return f"{share * 100:.4g}%"


def _edge(at: float) -> str:
    if at < 0.02 or at > 0.98:
        return "first" if at < 0.5 else "last"
    beside_nothing = at < 0.12  # moments have a word at 0 and none so near to it
    return "inner" if 0.28 < at < 0.72 or beside_nothing else "aside"  # which has no room on a narrow screen
