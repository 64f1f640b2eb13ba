"""The scoreboard: docs/conformance.md and docs/conformance.html, from the reports in docs/conformance/."""

from __future__ import annotations

from pathlib import Path

from . import scoreboard_data, scoreboard_html, scoreboard_md


def render(root: Path) -> dict[Path, str]:
    """The text of both pages, by path; none as long as no report is there."""
    board = scoreboard_data.load(root)
    if not board.tested:
        return {}
    return {
        root / "docs/conformance.md": scoreboard_md.render(board),
        root / "docs/conformance.html": scoreboard_html.render(board),
    }
