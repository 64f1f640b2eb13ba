"""JUnit XML is well-formed whatever the texts hold, counts rightly, and fails a build only for what fails a run."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from tests.conformance.example_runs import NASTY, case_of, invented, result_of, run_of

from lastword.conformance._results import Entry, Run, Verdict
from lastword.conformance.show import _junit


def xml_of(run: Run, folder: Path) -> ET.Element:
    _junit.write(run, folder / "junit.xml")
    return ET.parse(folder / "junit.xml").getroot()


def test_a_suite_an_area_and_a_case_a_case(tmp_path: Path) -> None:
    run = invented("junit")
    root = xml_of(run, tmp_path)
    assert [suite.get("name") for suite in root] == sorted({entry.result.case.area for entry in run.entries})
    assert {case.get("name") for case in root.iter("testcase")} == {entry.result.case.name for entry in run.entries}
    for element in (root, *root):
        cases = list(element.iter("testcase"))
        assert element.get("tests") == str(len(cases))
        for plural, name in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert element.get(plural) == str(sum(case.find(name) is not None for case in cases))
    bad = {case.get("name") for case in root.iter("testcase") if {child.tag for child in case} & {"failure", "error"}}
    assert bad == {entry.result.case.name for entry in run.failures}


def test_each_verdict_has_its_element(tmp_path: Path) -> None:
    crash, skip = (
        result_of(case_of("a/crash", choice="Opinions differ."), Verdict.CRASH),
        case_of("a/skip", needs=["retry"]),
    )
    run = run_of(
        Entry(result_of(case_of("a/right"), Verdict.RIGHT, seconds=1.25)),
        Entry(result_of(case_of("a/silent", choice="Opinions differ.", choice_outcome="completed"), Verdict.SILENT)),
        Entry(crash),
        Entry(result_of(case_of("a/known"), Verdict.HANG), known="it has no timers"),
        Entry(result_of(case_of("a/extra"), Verdict.LEAK), required=False),
        Entry(result_of(skip, Verdict.SKIPPED)),
        stale=("known.txt:3: x/y  # gone",),
        profile="draft",
    )
    found = {str(case.get("name")): case for case in xml_of(run, tmp_path).iter("testcase")}
    assert (found["a/right"].get("time"), found["a/right"].get("classname"), len(found["a/right"])) == (
        "1.250",
        "client.a",
        0,
    )
    silent = found["a/silent"][0]
    assert (silent.tag, silent.get("type")) == ("failure", "silent")
    assert "not incomplete" in str(silent.get("message"))
    assert "Opinions differ." in str(silent.text)
    assert "Opinions differ." not in str(found["a/crash"][0].text)
    assert '"outcome": "completed"' in str(silent.text)
    assert "FIN before the last chunk" in str(silent.text)
    assert (found["a/crash"][0].tag, found["a/crash"][0].get("message")) == ("error", crash.reasons[0])
    messages = {name: (found[name][0].tag, found[name][0].get("message")) for name in ("a/known", "a/extra", "a/skip")}
    assert messages == {
        "a/known": ("skipped", "known failure (hang): it has no timers"),
        "a/extra": ("skipped", "not in profile draft (leak): the server counted 3 connections, not 1"),
        "a/skip": ("skipped", "not declared: retry"),
    }
    assert found["known.txt:3: x/y  # gone"][0].get("type") == "stale"


def test_nasty_text_is_escaped(tmp_path: Path) -> None:
    result = result_of(
        case_of("a/b"), Verdict.WRONG_CODE, reasons=(NASTY,), said={"text": NASTY}, wire=(NASTY,), trace=()
    )
    root = xml_of(run_of(Entry(result), stale=(NASTY,)), tmp_path)
    failure = root.find("./testsuite/testcase/failure")
    assert failure is not None
    assert r"\x1b[31m<script>alert('x')</script>\x00\u202e]]>&" in str(failure.get("message"))
    assert str(failure.text).count("<script>") == 3
