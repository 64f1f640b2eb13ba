"""Adapters that would bring the runner down, rather than get a wrong verdict: each is a finding, or one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.command import adapter, cases, lastword

from lastword.conformance._cases import matches
from lastword.conformance._said import steady

WHOLE = "ending/whole@event"


@pytest.mark.parametrize(
    ("command", "verdict", "reason"),
    [
        (("nests_deeply", "100000"), "crash", "nested more than 64 levels deep"),
        (("nests_deeply", "900"), "crash", "nested more than 64 levels deep"),
        (("ends_by_number",), "crash", "the adapter was ended by signal 40 without an answer"),
        (("counts_seconds",), "detail", "text is '$time $time "),
        (("never_asks",), "false_alarm", "the server counted 0 requests, not 1"),
        (("retries_elsewhere",), "over_retry", "the server counted 3 requests, not 1"),
    ],
)
def test_it_is_a_finding(command: tuple[str, ...], verdict: str, reason: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    name, *arguments = command
    said = lastword(
        "conformance", "client", "--run", WHOLE, "--report", str(report), "--", *adapter(name), *arguments, timeout=20
    )
    assert said.status == 1, said
    (found,) = cases(report).values()
    assert found["verdict"] == verdict
    assert any(reason in each for each in found["reasons"]), found["reasons"]


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_one_that_cannot_be_started_again_ends_the_run(jobs: str, tmp_path: Path) -> None:
    command = [*adapter("starts_once"), str(tmp_path / "left")]
    said = lastword("conformance", "client", "--run", "ending/*", "--jobs", jobs, "--", *command, timeout=20)
    assert said.status == 2
    assert said.err == (
        "lastword: the adapter does not work. At start: the adapter ended with exit status 3 without an answer\n"
    )


def test_copies_that_are_not_alike_are_no_result() -> None:
    said = lastword("conformance", "client", "--run", "ending/*", "--", *adapter("differs"))
    assert said.status == 2
    assert "At start: its copies differ: the first said version '1." in said.err


def test_what_it_says_is_neither_obeyed_nor_taken_for_a_result(tmp_path: Path) -> None:
    junit = tmp_path / "results.xml"
    said = lastword(
        "conformance", "client", "--run", "ending/no-done", "--junit", str(junit), "--", *adapter("escapes")
    )
    assert said.status == 1
    assert r"[red]\x1b[2J\x9b31m\u202e ⏎ All right. ⏎ xxx" in said.out
    assert "All right." not in said.out.splitlines()
    assert max(map(len, said.out.splitlines())) < 1000
    assert junit.stat().st_size < 10_000

    early = lastword("conformance", "client", "--run", "ending/no-done", "--", *adapter("escapes"), "start")
    assert early.status == 2
    assert r"Its stderr:" in early.err
    assert r"[red]\x1b[2J\x9b31m\u202e" in early.err


def test_many_stars_are_told_not_to_match_at_once() -> None:
    assert not matches("*" * 60 + "y", "ending/no-finish-no-done-x")
    assert not matches("**/" * 30 + "y", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x")
    assert matches("***done", "ending/no-done")
    assert matches("**/**/no-done", "ending/no-done")


def test_words_of_the_vector_stay_between_those_that_do_not() -> None:
    assert steady("within 7 s, 15 s or 5 ms", "it took 15 s", {}) == "within $time, 15 s or $time"
