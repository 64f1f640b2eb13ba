"""The server suite can be trusted: servers that are wrong on purpose are caught for the right reason, and the shim passes."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import servers
from tests.conformance.command import Said, cases, lastword, started
from tests.ports import free_port

HERE = Path(__file__).parent
BROKEN = [sys.executable, str(HERE / "servers" / "broken.py"), "{port}", "{upstream}"]
RELAY = [sys.executable, str(HERE / "servers" / "relay.py"), "{port}", "{upstream}"]
CAUGHT = [
    ("broken-stream/no-finish", "silent", "a failure ended with [DONE]"),
    ("broken-stream/vllm", "silent", "the stream ended as a whole one does, without a terminal event (STR-14)"),
    ("broken-stream/unknown-finish", "silent", "the finish_reason of choice 0 is 'stop', not 'network_error'"),
    ("good/choices", "silent", "a 200 was sent, and yet the answer ended without a finish_reason for choice 1"),
    ("request/messages-text", "silent", "a failure was answered with 200, not 400"),
    ("good/usage-chunk", "silent", "the stream ended as a whole one does, without a terminal event (STR-14)"),
    ("good/answer", "hang", "no answer in the time allowed"),
    ("good/completions", "crash", "the server's process ended"),
    ("good/stream-text", "over_retry", "2 requests reached the engine, not 1"),
    ("good/length", "false_alarm", "a good request was answered with 400, not 200"),
    ("request/impossible-schema-stream", "wrong_code", "the error event was followed by [DONE], which says success (STR-14)"),
    ("request/bad-json", "wrong_code", "status is 500, not 400"),
    ("request/message-number", "wrong_code", "code is out_of_memory, not invalid_request_error"),
    ("request/stream-text", "wrong_code", "the connection was closed without an answer"),
    ("request/tools-text", "wrong_code", "the connection was closed without an answer"),
    ("leaving/stream", "leak", "the engine was still at work 3000 ms after it should have stopped (CAN-3)"),
    ("good/stream", "detail", "the stream has more than one terminal event: [DONE] and [DONE] (STR-14)"),
    ("good/unbuffered", "detail", "no event within 5000 ms: it is held back until the engine sends more"),
    ("request/no-messages", "detail", "the message tells a file path (ERR-4)"),
    ("request/not-an-object", "detail", "the message has 7, and details do not (ERR-3)"),
    ("refusal/html-502", "detail", "the message tells '<'"),
    ("request/max-tokens-text", "detail", "the error is in words of its own, readable as invalid_request_error (ERR-1)"),
    ("hint/request-id-made", "detail", "the answer has no x-request-id (HDR-4)"),
    ("hint/retryable", "detail", "a retryable error without retry-after and retry-after-ms (HDR-5)"),
]  # fmt: skip


def server(*options: str, command: list[str], timeout: float = 40, **environment: str) -> Said:
    return lastword("conformance", "server", *options, "--", *command, timeout=timeout, **environment)


@pytest.fixture(scope="module")
def report_of_the_broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """One run against a server that is wrong in another way for each case."""
    report = tmp_path_factory.mktemp("broken") / "report.json"
    only = [part for case, _, _ in CAUGHT for part in ("--run", case)]
    said = server("--answer-limit", "8", "--report", str(report), *only, command=BROKEN, timeout=60)
    assert said.status == 1, said
    return cases(report)


@pytest.mark.timeout(90)
@pytest.mark.parametrize(("case", "verdict", "reason"), CAUGHT, ids=[case for case, _, _ in CAUGHT])
def test_it_is_caught(report_of_the_broken: dict[str, dict[str, Any]], case: str, verdict: str, reason: str) -> None:
    """With the verdict that fits, and with the reason in a sentence."""
    found = report_of_the_broken[case]
    assert found["verdict"] == verdict, found
    assert any(reason in each for each in found["reasons"]), found["reasons"]


def test_the_server_is_started_anew_after_a_crash(tmp_path: Path) -> None:
    """One crash is one fault: what comes after it is played against a fresh process."""
    report = tmp_path / "report.json"
    only = ["--run", "good/completions", "--run", "good/completions-stream"]
    assert server("--report", str(report), *only, command=BROKEN).status == 1
    found = cases(report)
    assert (found["good/completions"]["verdict"], found["good/completions-stream"]["verdict"]) == ("crash", "right")


@pytest.mark.parametrize(
    ("mode", "case", "verdict", "reason"),
    [
        ("die", "shutdown/stream", "silent", "the stream ended as a whole one does, without a terminal event (STR-14)"),
        ("ignore", "shutdown/nearly-done", "hang", "the process had not ended 10000 ms after SIGTERM"),
    ],
)
def test_a_bad_end_is_caught(mode: str, case: str, verdict: str, reason: str, tmp_path: Path) -> None:
    """SIGTERM that kills without a word, and SIGTERM that is ignored; nothing is left behind either way."""
    report = tmp_path / "report.json"
    said = server("--run", case, "--report", str(report), command=[*BROKEN, "--on-sigterm", mode])
    assert said.status == 1, said
    (found,) = cases(report).values()
    assert found["verdict"] == verdict
    assert any(reason in each for each in found["reasons"]), found["reasons"]


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        (
            [sys.executable, "-c", "raise SystemExit('no model here')", "{port}"],
            [],
            "ended with status 1 before it answered; it said:\n  no model here",
        ),
        ([sys.executable, "-c", "import time; time.sleep(60)", "{port}"], ["--start-limit", "1"], "within 1 s; it said nothing"),
        (["no-such-program", "{port}"], [], "no-such-program: cannot be started: No such file or directory"),
        (BROKEN, ["--capabilities", "toools"], "--capabilities: toools: known are admission, "),
        (BROKEN, ["--capabilities", "upstream"], "--capabilities: upstream cannot be declared"),
        (BROKEN, ["--extra-body", "[]"], "--extra-body: a JSON object is needed"),
        (BROKEN, ["--url", "ftp://127.0.0.1"], "--url ftp://127.0.0.1: an address such as http://127.0.0.1:8000 is needed"),
        (BROKEN, ["--run", "good/nothing"], "'good/nothing' names no server case"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_no_result(command: list[str], options: list[str], words: str, tmp_path: Path) -> None:
    """Exit status 2, one sentence, and no report."""
    report = tmp_path / "report.json"
    said = server(*options, "--report", str(report), command=command)
    assert (said.status, report.exists()) == (2, False), said
    assert words in said.err


def test_without_a_command_an_address_is_needed() -> None:
    """Where nothing answers is no result either."""
    assert "--url: where does the server answer?" in lastword("conformance", "server").err
    said = lastword("conformance", "server", "--url", "http://127.0.0.1:9")
    assert said.status == 2
    assert "nothing answers at http://127.0.0.1:9 (refused): start the server" in said.err


@pytest.mark.timeout(150)
@pytest.mark.parametrize("limits", [True, False])
def test_the_sidecar_is_right_in_everything(limits: bool, tmp_path: Path) -> None:
    """All vectors, every capability, and a baseline without a line; and the same where no limit is set."""
    known = servers.KNOWN / "server-shim.txt"
    assert [line for line in known.read_text("utf-8").splitlines() if not line.startswith("#")] == []
    report = tmp_path / "report.json"
    declared = servers.sidecar(limits=limits)
    options, command = declared[: declared.index("--")], declared[declared.index("--") + 1 :]
    said = server(
        "--profile", "draft", "--report", str(report), *options,
        command=command, timeout=140,
    )  # fmt: skip
    assert said.status == 0, said
    assert {each["verdict"] for each in cases(report).values()} == ({"right"} if limits else {"right", "skipped"})


def test_a_bare_relay_gives_the_same_report_twice(tmp_path: Path) -> None:
    """Nothing in a report depends on luck: ports, times, generated ids."""
    texts = []
    for name in ("first.json", "second.json"):
        report = tmp_path / name
        skip = [part for area in ("shutdown", "leaving", "load", "limit") for part in ("--skip", f"{area}/**")]
        assert server(*skip, "--report", str(report), command=RELAY).status == 1
        texts.append(report.read_text("utf-8"))
    assert texts[0] == texts[1]
    assert "127.0.0.1" not in texts[0]


def test_a_run_that_is_stopped_ends_the_server() -> None:
    """SIGTERM in the middle of a case: everything that was started is gone a moment later."""
    port = free_port()
    options = ("--url", f"http://127.0.0.1:{port}", "--run", "good/answer")
    with started("conformance", "server", *options, "--", *BROKEN) as process:
        until = time.monotonic() + 30
        while not listens(port):
            assert time.monotonic() < until, "the server was not started"
            time.sleep(0.05)
        time.sleep(1)
        process.terminate()
        process.wait(20)
    assert process.returncode == 143


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
