"""A run as JUnit XML, as CI systems show it: a suite for each area, and one for baseline lines that are stale."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as ET

from lastword.conformance._results import Entry, Run, Verdict
from lastword.conformance.show._files import write as write_file
from lastword.conformance.show._printable import printable
from lastword.conformance.show._report import settled

_STALE = "no failing case matches this line of the baseline any more: delete it"


def write(run: Run, path: Path) -> None:
    """Write a run as JUnit XML; raises ``OSError``.

    Known failures, and those that the profile does not ask for, are skipped test cases: they do not fail a build.
    """
    entries = sorted(run.entries, key=lambda entry: (entry.result.case.area, entry.result.case.name))
    suites = [_suite(run, area, list(group)) for area, group in groupby(entries, key=lambda e: e.result.case.area)]
    if run.stale:
        suites.append(_stale(run))
    root = ET.Element("testsuites", {"name": printable(f"{run.implementation.name} ({run.kind})")})
    _count(root, [case for suite in suites for case in suite.iter("testcase")])
    root.extend(suites)
    ET.indent(root)
    write_file(path, f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, "unicode")}\n')


def _suite(run: Run, area: str, entries: list[Entry]) -> ET.Element:
    suite = ET.Element("testsuite", {"name": printable(area)})
    cases = [_case(run, entry) for entry in entries]
    _count(suite, cases)
    suite.append(_properties(run))
    suite.extend(cases)
    return suite


def _count(element: ET.Element, cases: Iterable[ET.Element]) -> None:
    cases = list(cases)
    element.set("tests", str(len(cases)))
    for plural, name in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(plural, str(sum(case.find(name) is not None for case in cases)))
    element.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")


def _properties(run: Run) -> ET.Element:
    made = run.implementation
    properties = ET.Element("properties")
    for name, value in {
        "implementation": made.name,
        "version": made.version,
        "language": made.language,
        "capabilities": " ".join(sorted(made.capabilities)),
        "contract": run.contract,
        "profile": run.profile or "all vectors",
    }.items():
        ET.SubElement(properties, "property", {"name": name, "value": printable(value)})
    return properties


def _case(run: Run, entry: Entry) -> ET.Element:
    result = entry.result
    element = _named(run, result.case.area, result.case.name, seconds=result.seconds)
    if result.verdict is Verdict.RIGHT:
        return element
    why = "; ".join(result.reasons) or result.verdict.value
    if result.verdict is Verdict.SKIPPED:
        _mark(element, "skipped", why)
    elif entry.known is not None:
        _mark(element, "skipped", f"known failure ({result.verdict}): {entry.known}").text = _body(entry)
    elif not entry.required:
        _mark(element, "skipped", f"not in profile {run.profile} ({result.verdict}): {why}").text = _body(entry)
    else:
        found = _mark(element, "error" if result.verdict is Verdict.CRASH else "failure", why)
        found.set("type", result.verdict.value)
        found.text = _body(entry)
    return element


def _named(run: Run, area: str, name: str, *, seconds: float = 0.0) -> ET.Element:
    names = {"classname": f"{run.kind}.{area}", "name": name}
    return ET.Element("testcase", {**{key: printable(text) for key, text in names.items()}, "time": f"{seconds:.3f}"})


def _mark(element: ET.Element, kind: str, message: str) -> ET.Element:
    return ET.SubElement(element, kind, {"message": printable(message)})


def _body(entry: Entry) -> str:
    result = entry.result
    said = json.dumps(settled(result.said), ensure_ascii=False, default=str) if result.said is not None else "nothing"
    choice = [f"the contract's own choice: {result.case.choice}"] if result.is_own_choice else []
    wire = ["on the wire:", *(f"  {line}" for line in result.trace or result.wire)]
    return printable("\n".join([*result.reasons, *choice, f"said: {said}", *wire]))


def _stale(run: Run) -> ET.Element:
    suite = ET.Element("testsuite", {"name": "baseline"})
    cases = [_named(run, "baseline", line) for line in run.stale]
    for case in cases:
        _mark(case, "failure", _STALE).set("type", "stale")
    _count(suite, cases)
    suite.extend(cases)
    return suite
