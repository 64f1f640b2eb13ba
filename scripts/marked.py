"""Texts that programs put into pages: what stands between two comments is theirs.

<!-- made by NAME: begin -->
…
<!-- made by NAME: end -->
"""

from __future__ import annotations

from pathlib import Path


def put(path: Path, name: str, text: str) -> None:
    """Replace what stands between the comments of that name.

    Raises:
        ValueError: the page does not have them once each, in that order.
    """
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- made by {name}: begin -->\n", f"<!-- made by {name}: end -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed or begin in after or end in after:
        raise ValueError(f"{path} has to have the lines {begin.strip()!r} and {end!r}, once each and in that order")
    path.write_text(f"{before}{begin}{text.rstrip()}\n{end}{after}", encoding="utf-8")
