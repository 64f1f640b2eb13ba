"""The scoreboard's two pages, taken apart for the tests."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from tests.conformance.example_runs import case_of, result_of

from generators import scoreboard
from lastword.conformance._results import Entry, Verdict


class Page(HTMLParser):
    """The elements of a page, and the text of its tables' cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.tables: list[list[list[str]]] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][-1].append("")
            self._in_cell = True
        elif self._in_cell and tag in {"span", "small"}:
            self.tables[-1][-1][-1] += " "

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in {"td", "th"}

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.tables[-1][-1][-1] += data

    def of(self, attribute: str) -> list[str]:
        return [value for name, value in self.attributes if name == attribute]


def pages(root: Path) -> tuple[str, str]:
    """Both pages: Markdown, HTML."""
    texts = scoreboard.render(root)
    assert list(texts) == [root / "docs/conformance.md", root / "docs/conformance.html"]
    return texts[root / "docs/conformance.md"], texts[root / "docs/conformance.html"]


def rendered(markdown: str) -> Page:
    return Page(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def entry(name: str, verdict: Verdict, **members: Any) -> Entry:
    return Entry(result_of(case_of(name, **members), verdict))
