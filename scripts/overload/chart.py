"""The result as a picture: what became of the engine's tokens in each arm, as an SVG that needs nothing else."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from overload.arms import Limits, arms
from overload.table import named

WIDTH, ROW, LEFT, TOP = 720, 46, 250, 34
USEFUL, WASTED = "#2a7f62", "#c8553d"
FONT = "font-family='system-ui, sans-serif' font-size='13'"


def chart(result: Mapping[str, Any]) -> str:
    """Bars of useful and wasted tokens, medians over the repetitions."""
    names = named(result["runs"])
    titles = {name: arm.title for name, arm in arms(Limits(**result["limits"])).items()}
    tokens = {name: [_median(result, name, f"{kind}_tokens") for kind in ("useful", "wasted")] for name in names}
    scale = (WIDTH - LEFT - 20) / max(1, *(sum(both) for both in tokens.values()))
    height = TOP + ROW * len(names) + 8
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' viewBox='0 0 {WIDTH} {height}' {FONT}>",
        f"<rect width='{WIDTH}' height='{height}' fill='#ffffff'/>",
        _key(LEFT, USEFUL, "tokens of answers that came in time"),
        _key(LEFT + 250, WASTED, "tokens made for nobody"),
    ]
    for row, name in enumerate(names):
        useful, wasted = tokens[name]
        top = TOP + ROW * row
        lines += [
            f"<text x='{LEFT - 10}' y='{top + 24}' text-anchor='end' fill='#222222'>{escape(titles[name])}</text>",
            f"<rect x='{LEFT}' y='{top + 6}' width='{useful * scale:.1f}' height='28' fill='{USEFUL}'/>",
            f"<rect x='{LEFT + useful * scale:.1f}' y='{top + 6}' width='{wasted * scale:.1f}' height='28' fill='{WASTED}'/>",
            f"<text x='{LEFT + 8}' y='{top + 24}' fill='#ffffff'>{useful:,.0f}</text>",
            f"<title>{escape(titles[name])}: {useful:,.0f} useful, {wasted:,.0f} wasted</title>",
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _median(result: Mapping[str, Any], name: str, what: str) -> float:
    return float(statistics.median(run["arms"][name][what] for run in result["runs"] if name in run["arms"]))


def _key(x: int, colour: str, text: str) -> str:
    return f"<rect x='{x}' y='10' width='12' height='12' fill='{colour}'/><text x='{x + 18}' y='21' fill='#222222'>{text}</text>"
