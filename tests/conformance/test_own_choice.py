"""What is the contract's own choice: the screen, JUnit and the scoreboard have the same rule, which two modules hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conformance.example_runs import case_of, result_of, run_of

from generators import scoreboard_data as data
from lastword.conformance._results import PASSED, Entry, Verdict
from lastword.conformance.show import _report

ROOT = Path(__file__).parents[2]


def test_the_run_and_the_scoreboard_call_the_same_a_choice() -> None:
    """Over everything that can be said of a failing case, and over the committed reports."""
    views: list[dict[str, Any]] = [{}, {"choice": "Why."}]
    views += [{"choice": "Why.", "choice_outcome": each} for each in ("completed", "incomplete", "failed")]
    told: list[Any] = [None, *({"outcome": each} for each in ("completed", "incomplete", "failed")), {"status": 200}]
    results = [
        result_of(case_of("a/b", **view), verdict, said=said)
        for verdict in set(Verdict) - PASSED
        for view in views
        for said in told
    ]
    for path in sorted((ROOT / "docs/conformance").glob("*.json")):
        results += [entry.result for entry in _report.read(path).entries if entry.result.verdict not in PASSED]
    counted_as = {False: 0, True: 0}
    for result in results:
        (case,) = json.loads(_report.text_of(run_of(Entry(result))))["cases"]
        assert data._is_choice(case) == result.is_own_choice, case
        counted_as[result.is_own_choice] += 1
    assert min(counted_as.values()) > 20
    assert not any(result_of(case_of("a/b", **views[1]), each).is_own_choice for each in PASSED)
