"""A report has what a run came to, is valid, and is the same bytes whenever and in whatever order it was made."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.example_runs import NASTY, case_of, invented, result_of, run_of

from lastword._contract import load
from lastword.conformance._results import Entry, Run, Verdict
from lastword.conformance._schemas import violations
from lastword.conformance.show import _report


def report_of(run: Run) -> dict[str, Any]:
    """What is written, parsed; valid."""
    report: dict[str, Any] = json.loads(_report.text_of(run))
    assert violations("report", report) == []
    return report


def test_a_report_comes_back_as_the_run_it_was_made_of(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    run = invented("round-trip")
    _report.write(run, first)
    back = _report.read(first)
    _report.write(back, second)
    assert first.read_bytes() == second.read_bytes()
    assert violations("report", json.loads(first.read_bytes())) == []
    assert back.implementation == run.implementation
    assert {entry.result.case.name: (entry.result.verdict, entry.known) for entry in back.entries} == {
        entry.result.case.name: (entry.result.verdict, entry.known) for entry in run.entries
    }


def test_order_times_and_traces_leave_no_mark() -> None:
    run = invented("same")
    shuffled = list(run.entries)
    random.Random(1).shuffle(shuffled)
    later = [replace(e, result=replace(e.result, seconds=9.0, trace=("77 ms",))) for e in shuffled]
    said = [replace(e, result=replace(e.result, said=_turned(e.result.said))) for e in later]
    assert _report.text_of(replace(run, entries=tuple(said))) == _report.text_of(run)


def _turned(said: Any) -> Any:
    return dict(reversed(said.items())) if said else said


def test_every_case_has_a_line_of_its_own() -> None:
    run = invented("lines")
    lines = [line for line in _report.text_of(run).splitlines() if line.startswith('    {"name": ')]
    assert len(lines) == len(run.entries)
    assert lines == sorted(
        lines, key=lambda line: (json.loads(line.rstrip(","))["vector"], json.loads(line.rstrip(","))["name"])
    )


def test_what_failed_is_told_in_full_and_what_did_not_is_not() -> None:
    failed = result_of(
        case_of("ending/no-done@7", choice="One may differ.", choice_outcome="completed"),
        Verdict.SILENT,
        unreported=("usage",),
    )
    right = result_of(case_of("ending/whole"), Verdict.RIGHT, said={"outcome": "completed"}, wire=("< 200",))
    skipped = result_of(case_of("retry/once", needs=["retry"]), Verdict.SKIPPED)
    report = report_of(run_of(Entry(failed, known="it ignores [DONE]"), Entry(right), Entry(skipped)))
    expected = {"outcome": "incomplete", "code": "stream_incomplete"}
    assert report["cases"] == [
        {
            "name": "ending/no-done@7",
            "vector": "ending/no-done",
            "area": "ending",
            "verdict": "silent",
            "reasons": list(failed.reasons),
            "expected": expected,
            "said": failed.said,
            "wire": list(failed.wire),
            "choice": "One may differ.",
            "choice_outcome": "completed",
            "known": "it ignores [DONE]",
            "unreported": ["usage"],
        },
        {"name": "ending/whole", "vector": "ending/whole", "area": "ending", "verdict": "right", "expected": expected},
        {
            "name": "retry/once",
            "vector": "retry/once",
            "area": "retry",
            "verdict": "skipped",
            "reasons": ["not declared: retry"],
            "expected": expected,
            "needs": ["retry"],
        },
    ]


def test_a_servers_expectation_is_status_terminal_and_code() -> None:
    expect = {
        "status": 503,
        "terminal": "error",
        "error": {"code": "queue_overloaded"},
        "headers": {"retry-after": "2"},
    }
    report = report_of(
        run_of(Entry(result_of(case_of("a/b", kind="server", expect=expect), Verdict.RIGHT)), kind="server")
    )
    assert report["cases"][0]["expected"] == {"code": "queue_overloaded", "status": 503, "terminal": "error"}


def test_totals_leave_out_what_the_profile_does() -> None:
    run = run_of(
        Entry(result_of(case_of("a/a"), Verdict.RIGHT)),
        Entry(result_of(case_of("a/b"), Verdict.HANG)),
        Entry(result_of(case_of("a/c"), Verdict.HANG), required=False),
    )
    report = report_of(run)
    assert {name: count for name, count in report["totals"].items() if count} == {"hang": 1, "right": 1}
    assert list(report["totals"]) == list(Verdict)
    assert [case.get("required", True) for case in report["cases"]] == [True, True, False]


def test_the_schema_has_every_verdict_in_its_order() -> None:
    listed = [each["const"] for each in load("schemas/report.json")["$defs"]["verdict"]["oneOf"]]
    assert listed == list(Verdict)


def test_nasty_text_comes_back_as_it_was(tmp_path: Path) -> None:
    result = result_of(case_of("a/b"), Verdict.CRASH, reasons=(NASTY,), said={NASTY: NASTY}, wire=(NASTY,))
    path = tmp_path / "r.json"
    _report.write(run_of(Entry(result, known=NASTY)), path)
    assert not set(path.read_bytes()) & {*range(9), *range(11, 32), 127}
    entry = _report.read(path).entries[0]
    assert (entry.result.reasons, entry.result.said, entry.known) == ((NASTY,), {NASTY: NASTY}, NASTY)


def test_values_that_json_lacks_and_long_ones_are_survived(tmp_path: Path) -> None:
    said = {"text": "a" * 300_000, "number": float("nan"), "list": list(range(1000)), "deep": {"z": {"b": 1, "a": ()}}}
    wire = tuple(f"< data: {number}" for number in range(1000))
    path = tmp_path / "r.json"
    _report.write(run_of(Entry(result_of(case_of("a/b"), Verdict.DETAIL, said=said, wire=wire))), path)
    assert path.stat().st_size < 4000
    result = _report.read(path).entries[0].result
    assert result.said is not None
    assert result.said["text"].endswith("a… (299440 characters more)")
    assert result.said["number"] == "nan"
    assert result.wire[-2:] == ("< data: 58", "… (941 more)")
    again = tmp_path / "again.json"
    _report.write(_report.read(path), again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "no JSON"), ("[]", "no report of this version"), ('{"format": 2}', "no report of this version")],
)
def test_what_is_no_report_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(_report.ReportError, match=rf"other\.json is {said}"):
        _report.read(path)
