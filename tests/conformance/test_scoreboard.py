"""The scoreboard tells what the reports tell: counted fairly, the same on both pages, and with no text taken for markup."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from tests.conformance.example_runs import NASTY, case_of, checkout_with, many_runs, result_of, run_of
from tests.conformance.scoreboard_pages import Page, entry, pages, rendered

from generators import scoreboard
from generators import scoreboard_data as data
from generators import scoreboard_words as words
from lastword.conformance._results import Entry, Implementation, Run, Verdict
from lastword.conformance.show import _printable, _report

ROOT = Path(__file__).parents[2]


def read_back(root: Path, run: Run) -> data.Tested:
    return data.load(checkout_with(root, {"one": run})).tested[0]


def test_a_vector_counts_once_and_by_its_worst_case(tmp_path: Path) -> None:
    run = run_of(
        entry("a/right", Verdict.RIGHT),
        entry("a/right@1", Verdict.RIGHT),
        entry("a/mixed", Verdict.RIGHT),
        entry("a/mixed@1", Verdict.DETAIL),
        entry("a/mixed@7", Verdict.SILENT),
        entry("b/none", Verdict.SKIPPED, needs=["retry", "cancel"]),
        Entry(result_of(case_of("b/known"), Verdict.HANG), known="it has no timers"),
        Entry(result_of(case_of("b/extra"), Verdict.CRASH), required=False),
        entry("b/more", Verdict.RIGHT, needs=[]),
    )
    one = read_back(tmp_path, run)
    assert (one.areas["a"].right, dict(one.areas["a"].red)) == (1, {"silent": 1})
    assert (one.areas["b"].right, one.areas["b"].skipped, dict(one.areas["b"].red)) == (1, 1, {"hang": 1})
    assert (one.total.right, one.total.played, one.total.skipped) == (2, 4, 1)
    assert one.lacking == {"retry": 1}
    markdown, _ = pages(tmp_path)
    assert "| a | 1/2 ✗ 1 silent |" in markdown
    assert "| b | 1/2 ✗ 1 hang |" in markdown
    assert "(python): 2 of 4 right; 1 silent, 1 hang. Its errors are mapped by class.\n" in markdown
    assert "  * 1 skipped, not declared: retry (1)\n" in markdown


@pytest.mark.parametrize(
    ("verdict", "outcome", "said", "counted"),
    [
        (Verdict.WRONG_CODE, None, "failed", "choice"),
        (Verdict.OVER_RETRY, None, "failed", "choice"),
        (Verdict.SILENT, None, "completed", "red"),
        (Verdict.SILENT, "completed", "completed", "choice"),
        (Verdict.SILENT, "failed", "completed", "red"),
        (Verdict.SILENT, "completed", None, "choice"),  # as of a server, which says no outcome
        (Verdict.SILENT, None, None, "red"),
        (Verdict.HANG, "completed", "completed", "red"),
        (Verdict.CRASH, None, "failed", "red"),
        (Verdict.UNABLE, None, "failed", "red"),
    ],
)
def test_another_view_of_our_choice_is_no_fault(
    tmp_path: Path, verdict: Verdict, outcome: str | None, said: str | None, counted: str
) -> None:
    members: dict[str, Any] = {"choice": "Opinions differ.", **({"choice_outcome": outcome} if outcome else {})}
    result = result_of(
        case_of("a/one", **members), verdict, said={"outcome": said, "code": None} if said else {"status": 200}
    )
    one = read_back(tmp_path, run_of(Entry(result), entry("a/two", Verdict.RIGHT)))
    markdown, html = pages(tmp_path)
    if counted == "choice":
        assert (one.areas["a"].choice, one.areas["a"].red.total()) == (1, 0)
        assert "| a | 1/2 ◇ 1 own choice |" in markdown
        assert "](conformance.html#client-one) | 0 | 0 | 0 | 1 |\n" in markdown
        assert 'data-verdict="choice"' in html
        assert "Opinions differ." in html
    else:
        assert (one.areas["a"].choice, dict(one.areas["a"].red)) == (0, {verdict.value: 1})
        assert f'data-verdict="{verdict.value}"' in html
        assert "Opinions differ." not in html


def test_both_pages_have_the_same_cells_and_the_reports_figures(tmp_path: Path) -> None:
    runs = many_runs()
    markdown, html = pages(checkout_with(tmp_path, runs))
    ours, theirs = rendered(markdown).tables, Page(html).tables
    for kind, one, other in (("client", ours[1], theirs[0]), ("server", ours[2], theirs[2])):
        assert [row[0] for row in one[1:]] == [row[0] for row in other[1:]]
        for left, right in zip(one[1:], other[1:], strict=True):
            assert [cell.replace(",", "") for cell in left[1:]] == [
                re.sub(r" \d+ skipped$", "", " ".join(cell.split())) for cell in right[1:]
            ]
        names = sorted((run.implementation.name for run in runs.values() if run.kind == kind), key=str.casefold)
        assert [cell.rpartition(" ")[0] for cell in one[0][1:]] == names
    board = data.load(tmp_path)
    for each in board.tested:
        cases = [entry.result for entry in runs[each.key].entries]
        bad = {case.case.id for case in cases if case.verdict not in {Verdict.RIGHT, Verdict.SKIPPED}}
        skipped = {case.case.id for case in cases if case.verdict is Verdict.SKIPPED}
        everything = {case.case.id for case in cases}
        assert (each.total.red.total() + each.total.choice, each.total.skipped) == (len(bad), len(skipped))
        assert each.total.right == len(everything - bad - skipped)
        assert {finding.vector for finding in each.findings} == bad


def test_every_link_leads_somewhere(tmp_path: Path) -> None:
    markdown, html = pages(checkout_with(tmp_path, many_runs()))
    rules = set(re.findall(r"^### (\S+)$", (tmp_path / "contract/SPEC.md").read_text(encoding="utf-8"), re.MULTILINE))
    there = Page(html).of("id")
    for page in (rendered(markdown), Page(html)):
        ids = page.of("id")
        assert len(ids) == len(set(ids))
        for target in set(page.of("href")) - {"data:,", "conformance.html"}:
            path, _, anchor = unquote(target).partition("#")
            if path == "conformance.html":
                assert anchor in there, target
                continue
            assert not path or (tmp_path / "docs" / path).resolve().is_file(), target
            assert anchor.upper() in rules if path.endswith("SPEC.md") else not anchor or anchor in ids, target


def test_those_who_met_the_same_stand_together(tmp_path: Path) -> None:
    """The graver verdicts, with the expectation and the wire of a vector once; the lesser ones are only counted."""
    runs = {}
    for name, said in (("one", "completed"), ("two", "completed"), ("three", "cancelled")):
        silent = result_of(case_of("a/x"), Verdict.SILENT, said={"outcome": said}, wire=("< end",))
        many = result_of(case_of("a/y"), Verdict.OVER_RETRY, wire=("< end",))
        lesser = [entry("a/z", Verdict.DETAIL), entry("b/z", Verdict.WRONG_CODE), entry("c/z", Verdict.LEAK)]
        made = Implementation(name, "1", "python", frozenset(), "")
        runs[name] = run_of(Entry(silent), Entry(many), *lesser, implementation=made)
    markdown, _ = pages(checkout_with(tmp_path, runs))
    listed = markdown.partition("\n### Clients\n")[2].partition("\n<a ")[0]
    assert listed == (
        "\n**`a/x`**: no longer in the contract.\n\nExpected: `incomplete stream_incomplete`\n\n    < end\n\n"
        "* **✗ silent** `completed`: one, two\n* **✗ silent** `cancelled`: three\n"
        "\n**`a/y`**: no longer in the contract.\n\nExpected: `incomplete stream_incomplete`\n\n    < end\n\n"
        "* **▲ over retry** the server counted 3 requests, not 1: one, three, two\n"
    )
    assert "| [one 1](conformance.html#client-one) | 1 | 1 | 1 | 0 |" in markdown


def test_the_page_is_short_enough_to_be_shown() -> None:
    """Hosts of code show the source of a longer one."""
    assert (ROOT / "docs/conformance.md").stat().st_size < 300_000


def test_what_is_told_first_is_what_the_reports_have() -> None:
    assert words.FIRST == _report._EXPECTED
    assert words.AWKWARD == _printable._AWKWARD


def run_that_says(text: str, name: str) -> Run:
    """A run in which everything that is free text is this text."""
    made = Implementation(name, text, text, frozenset({text}), text)
    texts = {"reasons": (text, text), "said": {text: text, "code": text}, "wire": (text, text)}
    fault = result_of(case_of("a/b", choice=text), Verdict.HANG, unreported=(text,), **texts)
    choice = result_of(case_of("a/c", choice=text), Verdict.DETAIL, **texts)
    skipped = result_of(case_of("a/d", needs=[text, "x"]), Verdict.SKIPPED)
    silent = result_of(case_of("a/e"), Verdict.SILENT, **texts)
    entries = (Entry(fault, known=text), Entry(silent), Entry(choice, known=text), Entry(skipped))
    return run_of(*entries, implementation=made, profile=text)


@pytest.mark.parametrize("nasty", [NASTY, "![x](http://x/) <b>&lt; `` | $z$\n\n# a\n* b <!-- ~~c~~ __d__"])
def test_no_text_of_a_report_becomes_markup(tmp_path: Path, nasty: str) -> None:
    """Both pages have the same elements with them as with a harmless word, and show them."""
    plain = pages(checkout_with(tmp_path / "plain", {"one": run_that_says("word", "word")}))
    markdown, html = pages(checkout_with(tmp_path / "nasty", {"one": run_that_says(nasty, nasty)}))
    assert rendered(markdown).tags == rendered(plain[0]).tags
    assert Page(html).tags == Page(plain[1]).tags
    assert {name for name, _ in Page(html).attributes} == {name for name, _ in Page(plain[1]).attributes}
    for text in (markdown, html):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800-\udfff\uffff]", text)
    part = nasty[1:20] if nasty == NASTY else nasty[:20]
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    assert shown.count(_escaped(part)) >= 15
    assert html.count(_escaped(part)) >= 15


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def test_a_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    _, html = pages(checkout_with(tmp_path, many_runs()))
    page = Page(html)
    assert page.of("src") == []
    assert page.tags.count("link") == 1
    assert not re.search(r"@import|url\(|fetch\(|https?://", html)
    policy = next(value for name, value in page.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; img-src data:; ")
    assert "unsafe" not in policy


def test_the_pages_depend_on_nothing_but_the_reports(tmp_path: Path) -> None:
    runs = many_runs()
    first = scoreboard.render(checkout_with(tmp_path / "a", runs))
    second = scoreboard.render(checkout_with(tmp_path / "b", dict(reversed(runs.items()))))
    assert list(first.values()) == list(second.values())


def test_a_vector_that_is_no_longer_there_is_named_so(tmp_path: Path) -> None:
    markdown, html = pages(checkout_with(tmp_path, {"old": run_of(entry("gone/since", Verdict.HANG))}))
    assert "**`gone/since`**: no longer in the contract." in markdown
    assert "This vector is no longer in the contract." in html
    assert re.search(r"\d+ vectors are newer than its report", markdown)


def test_without_reports_there_are_no_pages(tmp_path: Path) -> None:
    assert scoreboard.render(checkout_with(tmp_path, {})) == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"implementation": {}, "kind": "client", "cases": []}'])
def test_a_broken_report_is_named(tmp_path: Path, text: str) -> None:
    root = checkout_with(tmp_path, {})
    (root / "docs/conformance/broken.json").write_text(text)
    with pytest.raises(data.ReportsError, match=r"broken\.json is no report .*make scoreboard"):
        scoreboard.render(root)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (None, "nothing"),
        ({}, "nothing"),
        ({"outcome": "completed", "code": None, "text": "Hel", "texts": {"0": "Hel"}}, 'completed, text "Hel"'),
        ({"code": "a", "codes_also_accepted": ["b"], "outcome": "failed"}, "failed a or b"),
        ({"code": ["a", "b"], "status": [500, 503], "terminal": "error"}, "a or b 500 or 503 error"),
        ({"status": 200, "error": {"code": 7}}, '200, error {"code": 7}'),
        ({"message": "no more", "retryable": False, "usage": None}, 'message "no more"'),
    ],
)
def test_what_was_said_is_told_in_a_line(values: dict[str, Any] | None, told: str) -> None:
    assert words.in_words(values) == told
