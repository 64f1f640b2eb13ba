"""The runner can be trusted: adapters that lie, hang, crash and babble are each caught, for the right reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.command import adapter, cases, lastword

WHOLE, CUT = "ending/whole", "ending/no-finish-no-done"
QUICK = "wire/lingering-server"  # gives a client two seconds


@pytest.mark.parametrize(
    ("name", "case", "verdict", "reason"),
    [
        ("lies", CUT, "silent", "outcome is completed (None), not incomplete"),
        ("hangs", QUICK, "hang", "no answer within the 2000 ms that the vector gives"),
        ("crashes", WHOLE, "crash", "the adapter was ended by SIGABRT without an answer"),
        ("exits", WHOLE, "crash", "the adapter ended with exit status 0 without an answer"),
        ("forks", WHOLE, "crash", "the adapter ended with exit status 3 without an answer"),
        ("garbage", WHOLE, "crash", "a line on its stdout is no JSON: '\\x1b[31mdone!'; logs belong on stderr"),
        ("list_answer", WHOLE, "crash", "a line on its stdout is no JSON object: '[1, 2]'"),
        ("floods_stdout", WHOLE, "crash", "a line on its stdout is no JSON: 'xxxx"),
        ("chatters", WHOLE, "crash", "a line on its stdout is no JSON: 'that went well'"),
        ("answers_twice", WHOLE, "crash", "it answered the case twice"),
        ("out_of_order", WHOLE, "crash", "it answered an earlier case again"),
        ("wrong_seq", WHOLE, "crash", "its answer has not the seq of the case"),
        ("invalid_result", WHOLE, "crash", "its answer is not valid: $.result.outcome: 'done' is not one of"),
        ("unable", WHOLE, "unable", "the adapter could not try: the library was built without HTTP"),
        ("retries_too_much", "body/vllm-unauthorized", "over_retry", "the server counted 3 requests, not 1"),
        ("never_retries", "retry/after-ms", "detail", "the server counted 1 requests, not 2"),
        ("keeps_socket", "cancel/after-two-chunks", "leak", "request 1: the client had not left within 2000 ms"),
    ],
)
def test_it_is_caught(name: str, case: str, verdict: str, reason: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    said = lastword("conformance", "client", "--run", f"{case}@event", "--report", str(report), "--", *adapter(name))
    assert said.status == 1, said
    (found,) = cases(report).values()
    assert found["verdict"] == verdict
    assert any(reason in each for each in found["reasons"]), found["reasons"]
    assert reason.partition("\\")[0] in said.out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hangs_at_start", "At start: no answer to start within 2 s"),
        ("hangs_at_first", "At its first, plain and whole answer: no answer within 2 s"),
        ("crashes_at_start", "the adapter ended with exit status 1 without an answer\nIts stderr:\nTraceback"),
        ("banner", "a line on its stdout is no JSON: 'Welcome to broken 0!'; logs belong on stderr"),
        ("other_protocol", "it answered start with protocol 2; this runner speaks 1"),
        ("unknown_capability", "it declares unknown capabilities ['retries']; known are cancel, "),
    ],
)
def test_what_does_not_even_start_is_no_result(name: str, words: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    said = lastword(
        *(
            "conformance",
            "client",
            "--run",
            WHOLE,
            "--start-limit",
            "2" if name.startswith("hangs") else "30",
            "--report",
            str(report),
            "--",
            *adapter(name),
        )
    )
    assert said.status == 2
    assert said.err.startswith("lastword: the adapter does not work. ")
    assert words in said.err
    assert "no module named client_library" in said.err or name != "crashes_at_start"
    assert not report.exists()


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("never_stops", "it did not leave within 3 s of stop and EOF on stdin\n"),
        (
            "ignores_sigterm",
            "it did not leave within 3 s of stop and EOF on stdin, nor within 1 s of SIGTERM: it was killed",
        ),
        ("leaves_child", ""),
        ("floods_stderr", ""),
    ],
)
def test_what_is_bad_and_no_fault_of_the_client_costs_it_nothing(name: str, note: str) -> None:
    said = lastword("conformance", "client", "--run", WHOLE, "--", *adapter(name))
    assert said.status == 0, said
    assert note in said.err
    assert bool(said.err) == bool(note), said.err


def test_a_crash_costs_one_case_and_shows_what_was_on_stderr() -> None:
    said = lastword("conformance", "client", "--run", WHOLE, "--jobs", "1", "--", *adapter("crashes"))
    assert said.status == 1
    assert "2 cases: 0 right, 2 crash" in said.out
    assert f"stderr of the adapter that failed in {WHOLE}, {WHOLE}@1:\n  the library fell over\n" in said.err


def test_verbose_shows_what_was_on_stderr_without_any_crash() -> None:
    said = lastword("conformance", "client", "--run", WHOLE, "--jobs", "1", "-v", "--", *adapter("floods_stderr"))
    assert said.status == 0
    assert "stderr of adapter 1:" in said.err
    assert "debug line 39999" in said.err
    assert len(said.err) < 40_000
