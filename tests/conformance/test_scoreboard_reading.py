"""Who sees the scoreboard for the first time is told what its words mean, and no cell says less than there is."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tests.conformance.example_runs import case_of, checkout_with, many_runs, result_of, run_of
from tests.conformance.scoreboard_pages import Page, entry, pages

from generators import scoreboard
from generators import scoreboard_data as data
from lastword.conformance._results import Entry, Verdict


def test_a_cell_tells_the_worst_and_how_much_else_is_not_right(tmp_path: Path) -> None:
    result = result_of(case_of("body/choice", choice="Opinions differ."), Verdict.DETAIL, said={"outcome": "failed"})
    verdicts = [Verdict.RIGHT, Verdict.OVER_RETRY, Verdict.DETAIL, Verdict.WRONG_CODE, Verdict.DETAIL, Verdict.SKIPPED]
    entries = [entry(f"body/{number}", verdict) for number, verdict in enumerate(verdicts)]
    markdown, html = pages(checkout_with(tmp_path, {"one": run_of(*entries, Entry(result))}))
    assert "| body | 1/6 ▲ 1 over retry, 3 lesser, 1 own choice |" in markdown
    assert "body: 1/6 ▲ 1 over retry, 3 lesser, 1 own choice, details" in Page(html).of("aria-label")[1]


def test_every_area_is_explained_in_the_contracts_words(tmp_path: Path) -> None:
    markdown, html = pages(checkout_with(tmp_path, many_runs()))
    board = data.load(tmp_path)
    for kind in ("client", "server"):
        assert {name for names, _ in board.about[kind] for name in names} >= set(board.areas(kind))
        for names, about in board.about[kind]:
            assert f"* {', '.join(f'`{name}`' for name in names)}: {about}\n" in markdown
            assert f": {about}</li>" in html


def test_a_contract_that_explains_no_areas_is_named(tmp_path: Path) -> None:
    root = checkout_with(tmp_path, {})
    contract = root / "contract"
    theirs = contract.resolve()
    contract.unlink()
    contract.mkdir()
    for name in ("schemas", "vectors", "VERSION"):
        (contract / name).symlink_to(theirs / name)
    (contract / "README.md").write_text("# Contract\n")
    with pytest.raises(data.ReportsError, match=r"contract/README\.md has no table of the areas"):
        scoreboard.render(root)


def test_commands_are_set_as_code(tmp_path: Path) -> None:
    markdown, html = pages(checkout_with(tmp_path, many_runs()))
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    for text in (shown, html):
        assert "<code>make scoreboard</code>" in text
        assert text.index("no surprise") < text.index("<table")
        assert text.index("<code>silent</code>: a broken answer") < text.index("<table")
    assert "\\`" not in markdown.partition("## How this is made")[2]
