"""The runner of the Java tests: what it counts is what its run reported, of every module."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import java_tests

MAVEN = """
import pathlib, sys
for module in ("library", "peers/one"):
    reports = pathlib.Path(sys.argv[1], module, "target/surefire-reports")
    reports.mkdir(parents=True, exist_ok=True)
    (reports / "TEST-new.xml").write_text('<testsuite tests="2" failures="0" errors="0" skipped="0"/>')
"""


@pytest.mark.parametrize("module", ["library", "peers/one"])
def test_a_report_of_an_earlier_run_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str
) -> None:
    """However deep its module is."""
    reports = tmp_path / module / "target" / "surefire-reports"
    reports.mkdir(parents=True)
    (reports / "TEST-gone.xml").write_text('<testsuite tests="7" failures="1" errors="0" skipped="1"/>', "utf-8")
    monkeypatch.setattr(java_tests, "ROOT", tmp_path)
    monkeypatch.setattr(java_tests, "MAVEN", [sys.executable, "-c", MAVEN])
    assert java_tests.run("17.0.1", str(tmp_path)) == 0
    assert capsys.readouterr().out.startswith("java 17.0.1: 4 tests, 0 failures, 0 errors, 0 skipped (")


def test_the_java_is_mavens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_tests.mavens() == tmp_path / "bin" / "java"
    monkeypatch.delenv("JAVA_HOME")
    assert java_tests.mavens() == Path("java")
