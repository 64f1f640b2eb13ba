"""The runner of the fault tests: what it counts is there, and counts only where it ran and passed."""

from __future__ import annotations

import ast

import pytest

from fault_rounds import FAULTS, LIVE, passed


@pytest.mark.parametrize("test", sorted({test for tests in FAULTS.values() for test in tests}))
def test_every_test_of_a_fault_exists(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((LIVE / f"{file}.py").read_text("utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_issues_faults_are_all_there() -> None:
    simple = {"kill", "stop", "term", "pause", "sleep", "overload"}
    phases = {f"{what}-{phase}" for what in ("disconnect", "deadline") for phase in ("queued", "generating")}
    assert set(FAULTS) == simple | phases


def test_a_fault_passes_only_where_each_of_its_tests_ran_and_none_failed() -> None:
    whole = {test: [True, True] for test in FAULTS["kill"]}
    assert passed("kill", whole)
    last = FAULTS["kill"][-1]
    assert not passed("kill", {**whole, last: [True, False]})
    assert not passed("kill", {test: fared for test, fared in whole.items() if test != last})
