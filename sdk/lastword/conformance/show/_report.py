"""A run as JSON and back (``schemas/report.json``): the same run gives the same bytes, so that reports can be committed.

Nothing in it depends on when or where it was made. Cases are sorted and have a line each, which keeps diffs readable;
what a case that is right said, and what was on its wire, is left out.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lastword.conformance._results import PASSED, Case, CaseResult, Entry, Implementation, Run, Verdict
from lastword.conformance._schemas import violations
from lastword.conformance.show._files import write as write_file
from lastword.conformance.show._printable import json_safe, shortened

FORMAT: Final = 1
"""Of the report, counted up when something that reads them would have to change."""

_EXPECTED: Final = ("outcome", "code", "codes_also_accepted", "status", "terminal")
_MOST_ITEMS: Final = 60  # of a list, and lines of a wire


class ReportError(ValueError):
    """A file is no report; the message names the file and what is wrong with it."""


def write(run: Run, path: Path) -> None:
    """Write a run's report; raises ``OSError``."""
    write_file(path, text_of(run))


def read(path: Path) -> Run:
    """Read a report; times, traces and stale lines of a baseline are not in it.

    A case's vector has the members that the report has. Raises ``ReportError`` and ``OSError``.
    """
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ReportError(f"{path} is no JSON: {error}") from error
    if wrong := violations("report", report):
        raise ReportError(f"{path} is no report of this version ({wrong[0]}): make it again")
    implementation = {**report["implementation"], "capabilities": frozenset(report["implementation"]["capabilities"])}
    return Run(
        kind=report["kind"],
        implementation=Implementation(**implementation),
        contract=report["contract"],
        profile=report["profile"],
        entries=tuple(_entry(report["kind"], line) for line in report["cases"]),
    )


def text_of(run: Run) -> str:
    """The report's text: a member a line, and a case a line."""
    members = [f'  "{name}": {_dump(value)}' for name, value in _head(run).items()]
    cases = ",\n".join(f"    {_dump(_line(entry))}" for entry in sorted(run.entries, key=_place))
    return "{\n" + ",\n".join([*members, f'  "cases": [\n{cases}\n  ]' if cases else '  "cases": []']) + "\n}\n"


def totals(run: Run) -> dict[str, int]:
    """How many cases have which verdict, all verdicts in their order; what the profile does not ask for is left out."""
    counted = Counter(entry.result.verdict for entry in run.entries if entry.required)
    return {verdict.value: counted[verdict] for verdict in Verdict}


def _head(run: Run) -> dict[str, Any]:
    made = run.implementation
    return {
        "format": FORMAT,
        "kind": run.kind,
        "implementation": {
            "name": made.name,
            "version": made.version,
            "language": made.language,
            "capabilities": sorted(made.capabilities),
            "note": made.note,
        },
        "contract": run.contract,
        "profile": run.profile,
        "totals": totals(run),
    }


def _place(entry: Entry) -> tuple[str, str]:
    return entry.result.case.id, entry.result.case.name


def _line(entry: Entry) -> dict[str, Any]:
    result, case = entry.result, entry.result.case
    shown = result.verdict not in PASSED
    line = {
        "name": case.name,
        "vector": case.id,
        "area": case.area,
        "verdict": result.verdict.value,
        "reasons": result.reasons,
        "expected": _expected(case.vector.get("expect", {})),
        "said": result.said if shown else None,
        "wire": result.wire if shown else (),
        "needs": sorted(case.needs) if result.verdict is Verdict.SKIPPED else (),
        "choice": case.choice,
        "choice_outcome": case.vector.get("choice_outcome"),
        "known": entry.known,
        "unreported": result.unreported,
    }
    short = {name: settled(value) for name, value in line.items() if value not in (None, (), [])}
    return short if entry.required else {**short, "required": False}


def _expected(expect: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict that was hoped for, without the small print."""
    named = {name: expect[name] for name in _EXPECTED if name in expect}
    error = expect.get("error")
    return {**named, "code": error["code"]} if isinstance(error, Mapping) and "code" in error else named


def _entry(kind: Any, line: Mapping[str, Any]) -> Entry:
    kept = {name: line[name] for name in ("choice", "choice_outcome", "needs") if name in line}
    _, _, segmentation = line["name"].partition("@")
    result = CaseResult(
        case=Case(kind, {"id": line["vector"], "expect": line["expected"], **kept}, segmentation or "event"),
        verdict=Verdict(line["verdict"]),
        reasons=tuple(line.get("reasons", ())),
        said=line.get("said"),
        wire=tuple(line.get("wire", ())),
        unreported=tuple(line.get("unreported", ())),
    )
    return Entry(result, known=line.get("known"), required=line.get("required", True))


def settled(value: Any) -> Any:
    """Give a value that JSON has, of a size to be committed, the same whatever order its members came in."""
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, Mapping):
        return {str(name): settled(value[name]) for name in sorted(value, key=str)}
    if isinstance(value, Sequence):
        return [settled(each) for each in (value if len(value) <= _MOST_ITEMS else _shortened(value))]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _shortened(values: Sequence[Any]) -> Iterator[Any]:
    yield from values[: _MOST_ITEMS - 1]
    yield f"… ({len(values) - _MOST_ITEMS + 1} more)"


def _dump(value: Any) -> str:
    return json_safe(json.dumps(value, ensure_ascii=False, allow_nan=False))
