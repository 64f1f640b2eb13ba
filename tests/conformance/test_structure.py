"""The suite's parts know of each other what ``lastword.conformance`` says they do, and no more."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lastword.conformance

ROOT = Path(lastword.conformance.__file__).parent
HERE = "lastword.conformance."


def imported(path: Path) -> set[str]:
    """Modules of the suite that a file imports, wherever in it, without the suite's own name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {
        f"{node.module}.{each.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    names |= {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    return {name.removeprefix(HERE) for name in names if name.startswith(HERE)}


def parts_of(folder: str) -> set[str]:
    """The folders and files that a folder's modules import from."""
    found = {name.partition(".")[0] for path in (ROOT / folder).glob("*.py") for name in imported(path)}
    assert folder in found, "nothing was read"
    return found - {folder}


@pytest.mark.parametrize("folder", ["client", "server"])
def test_each_kind_of_vector_knows_nothing_of_the_others(folder: str) -> None:
    assert not parts_of(folder) & {"core", "client", "server", "_run"}
    shown = {name for path in (ROOT / folder).glob("*.py") for name in imported(path) if name.startswith("show.")}
    assert {name.split(".")[1] for name in shown} <= {"_printable"}


def test_the_core_is_played_by_none_of_them() -> None:
    for path in (ROOT / "core").glob("*.py"):
        assert not {name.partition(".")[0] for name in imported(path)} & {"client", "server", "show", "_run"}


def test_what_is_shown_is_results() -> None:
    assert parts_of("show") <= {"_results", "_schemas"}


def test_what_all_share_knows_none_of_the_kinds() -> None:
    for path in ROOT.glob("*.py"):
        assert not {name.partition(".")[0] for name in imported(path)} & {"core", "client", "server"}, path.name
