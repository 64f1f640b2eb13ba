"""The runner of the fault tests: what it counts is there, and counts only where it ran and passed."""

from __future__ import annotations

import ast

import pytest

from fault_rounds import FAULTS, LIVE, nodes, passed


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


def test_the_tests_run_in_the_order_of_their_files() -> None:
    """The one that kills a server that others share is the last of its file."""
    named = [node.rpartition("/")[2] for node in nodes(list(FAULTS))]
    assert len(named) == len(set(named)) == len({test for tests in FAULTS.values() for test in tests})
    endpoints = [name for name in named if name.startswith("test_endpoints.py")]
    assert endpoints[-1] == "test_endpoints.py::test_a_dead_engine_is_dead"
    assert len(endpoints) > 1
