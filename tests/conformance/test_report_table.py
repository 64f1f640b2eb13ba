"""What is printed of a run: failures first, an area a line, what to do next; the same words with and without colour."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console
from tests.conformance.example_runs import NASTY, case_of, invented, result_of, run_of

from lastword.conformance._results import Entry, Run, Verdict
from lastword.conformance.show import _table


def printed(run: Run, *, verbose: bool = False, trace: bool = False, planned: int = 0, **console: Any) -> str:
    out = io.StringIO()
    _table.show(run, Console(file=out, **console), verbose=verbose, trace=trace, planned=planned)
    return out.getvalue()


RIGHT = Entry(result_of(case_of("b/right"), Verdict.RIGHT))
KNOWN = Entry(result_of(case_of("b/known"), Verdict.HANG), known="it has no timers")
SILENT = Entry(result_of(case_of("a/one@1", choice="Opinions differ.", choice_outcome="completed"), Verdict.SILENT))
SKIPPED = Entry(result_of(case_of("a/two", needs=["retry", "cancel"]), Verdict.SKIPPED))


def test_the_page_of_a_run_that_failed() -> None:
    more = Entry(result_of(case_of("a/one@7", choice="Opinions differ.", choice_outcome="completed"), Verdict.SILENT))
    unreported = Entry(result_of(case_of("c/x"), Verdict.RIGHT, unreported=("usage",)))
    extra = Entry(result_of(case_of("c/y"), Verdict.LEAK), required=False)
    run = run_of(RIGHT, KNOWN, SILENT, more, SKIPPED, unreported, extra, stale=("k.txt:1: c/* # why",), profile="draft")
    assert printed(run) == (
        "silent      a/one@1 (50 ms; @7 fails alike)\n"
        "    outcome is completed (None), not incomplete\n"
        "    The contract's own choice: Opinions differ.\n"
        "@1, @7: the same vector in writes of so many bytes; @whole: in one.\n"
        "\n"
        "a      0/2 right, 2 silent, 1 skipped, 2 of these own choice\n"
        "b      1/2 right, 1 hang, 1 of these known\n"
        "c      1/1 right\n"
        "\n"
        "some-client 1.2.3, contract 1.0, profile draft\n"
        "6 cases: 2 right, 2 silent, 1 hang, 1 skipped, 2 of these own choice, 1 of these known\n"
        "Skipped, not declared: retry (1)\n"
        "Not compared, not reported: usage (1)\n"
        "Played and not counted, not in profile draft: 1 case\n"
        "stale       k.txt:1: c/* # why\n"
        "2 new failures, 2 of them by the contract's own choice: mend them or list them in a baseline.\n"
        "1 baseline line is stale: delete it.\n"
        "1 known failure, as the baseline says.\n"
    )


def test_a_run_without_failures_says_so() -> None:
    assert printed(run_of(RIGHT)).splitlines()[-1] == "All right."


def test_a_run_that_played_nothing_is_not_green() -> None:
    extra = Entry(result_of(case_of("c/y"), Verdict.RIGHT), required=False)
    for run in (run_of(SKIPPED), run_of(SKIPPED, extra, profile="draft")):
        assert printed(run).splitlines()[-1] == "Nothing was played: every case was skipped."
        assert "All right." not in printed(run)


def test_the_gravest_failures_come_last() -> None:
    verdicts = (Verdict.SILENT, Verdict.DETAIL, Verdict.CRASH, Verdict.WRONG_CODE)
    run = run_of(RIGHT, *(Entry(result_of(case_of(f"a/{each}"), each)) for each in verdicts))
    for verbose in (False, True):
        rows = [re.split(r"  +", line)[0] for line in printed(run, verbose=verbose).splitlines()]
        assert [each for each in rows if each in {"silent", "detail", "crash", "wrong code"}] == [
            "detail",
            "wrong code",
            "crash",
            "silent",
        ]


def test_many_failures_are_told_in_part_and_all_on_demand() -> None:
    """Those that are the contract's own choice are told last; cases that fail alike count as one that is told."""
    numbers = [f"{number:02}" for number in range(9)]
    plain = [Entry(result_of(case_of(f"b/{each}"), Verdict.WRONG_CODE)) for each in numbers]
    choices = [Entry(result_of(case_of(f"a/{each}", choice="So."), Verdict.WRONG_CODE)) for each in numbers]
    alike = [Entry(result_of(case_of(f"b/00@{each}"), Verdict.WRONG_CODE)) for each in (1, 7)]
    run = run_of(*choices, *plain, *alike)
    lines = printed(run).splitlines()
    assert [line for line in lines if line.startswith("wrong code")] == [
        "wrong code  b/00 (50 ms; @1, @7 fail alike)",
        *(f"wrong code  b/{each} (50 ms)" for each in numbers[1:5]),
        "wrong code  … 13 more, which -v shows",
    ]
    assert lines[-1].startswith("20 new failures, 9 of them by the contract's own choice: ")
    for given in ({"verbose": True}, {"trace": True}):
        text = printed(run, **given)
        assert all(each.result.case.id in text for each in run.entries)
        assert "more" not in text


def test_what_an_interrupted_run_came_to_is_marked() -> None:
    text = printed(run_of(RIGHT, SILENT), planned=7)
    assert "silent      a/one@1" in text
    assert text.splitlines()[-1] == "Interrupted after 2 of 7 cases; no report was written."
    assert "All right" not in printed(run_of(RIGHT), planned=7)


def test_verbose_lists_every_case() -> None:
    run = invented("verbose")
    lines = printed(run, verbose=True).splitlines()
    for entry in run.entries:
        state = entry.result.verdict.replace("_", " ")
        assert any(re.match(rf"{state} +{re.escape(entry.result.case.name)}( \(|$)", line) for line in lines)


def test_trace_shows_the_exchange() -> None:
    assert "       0 ms  > POST" in printed(run_of(SILENT), trace=True)
    assert "POST" not in printed(run_of(SILENT))


@pytest.mark.parametrize("width", [60, 100, 200])
def test_a_terminal_of_any_width_keeps_the_words(width: int) -> None:
    run = invented("width", faults=0.5)
    screen = printed(run, force_terminal=True, width=width, color_system="truecolor")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen)
    assert max(map(len, plain.splitlines())) <= width
    assert set(re.findall(r"[\w/.-]+", printed(run))) <= set(re.findall(r"[\w/.-]+", plain))


def test_a_pipe_gets_neither_colour_nor_wrapping() -> None:
    text = printed(invented("pipe", faults=0.5), width=40)
    assert "\x1b" not in text
    assert any(len(line) > 60 for line in text.splitlines())


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = invented("plain")
    assert re.search(r"\x1b\[[0-9;]*3[0-9]", printed(run, force_terminal=True, color_system="standard"))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*[349][0-9]", printed(run, force_terminal=True, color_system="standard"))


def test_nasty_text_moves_no_cursor() -> None:
    result = result_of(case_of("a/b"), Verdict.CRASH, reasons=(NASTY, "[bold]no markup[/bold]"), trace=(NASTY,))
    text = printed(
        run_of(Entry(result), Entry(result_of(case_of("a/c"), Verdict.LEAK), known=NASTY)), verbose=True, trace=True
    )
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\ud800]", text)
    assert text.count(r"\x1b[31m<script>") == 3
    assert "[bold]no markup[/bold]" in text
