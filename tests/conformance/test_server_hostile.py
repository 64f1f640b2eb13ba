"""What servers and options may be like that mean harm, or were not meant at all: a verdict or a sentence, never a crash."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.conformance.command import Said, cases, lastword, started
from tests.ports import free_port

from lastword.conformance._cases import API_KEY
from lastword.conformance._results import ConformanceError
from lastword.conformance.server._probe import _context, _counts
from lastword.conformance.server._request import Target, read_url

SERVERS = Path(__file__).parent / "servers"
KEY = "sk-nobody-may-see-this"
SENTENCES = [
    ("page", "names no model (HTTP 200 text/html): give one with --model"),
    ("redirect", "names no model (HTTP 307 application/json): give one with --model"),
    ("key-needed", "names no model (HTTP 401 application/json): give its key with --api-key"),
    ("nested-list", "names no model (HTTP 200 application/json)"),
    ("empty-name", "names no model (HTTP 200 application/json)"),
    ("closes", "did not answer at http://127.0.0.1:"),
    ("resets", "did not answer at http://127.0.0.1:"),
    ("silent", "did not answer at http://127.0.0.1:"),
    ("endless-head", "did not answer at http://127.0.0.1:"),
    ("endless-1xx", "did not answer at http://127.0.0.1:"),
    ("slow", "did not answer at http://127.0.0.1:"),
]
VERDICTS = [
    ("endless-body", "good/answer", "hang", "the answer goes on and on: the client gave up"),
    ("endless-events", "good/stream", "hang", "the answer goes on and on: the client gave up"),
    ("two-lengths", "good/answer", "wrong_code", "the connection was closed without an answer"),
    ("bad-chunk", "good/answer", "wrong_code", "a 200 was cut"),
    ("odd-hints", "hint/passed-on", "detail", "retry-after is "),
    ("nested-error", "request/no-messages", "detail", "in words of its own, readable as invalid_request_error"),
    ("vast-number", "request/no-messages", "right", ""),
    ("from-cache", "good/utf8-cut", "silent", "the engine was not asked: whatever the answer says, it is none of its"),
    ("odd-metrics", "good/answer", "false_alarm", "a good request was answered with 500, not 200"),
    ("escapes", "good/answer", "false_alarm", "a good request was answered with 500, not 200"),
]


def hostile(mode: str, *options: str, engine: bool = True, key: str = "") -> Said:
    command = [sys.executable, str(SERVERS / "hostile.py"), "{port}", mode, *(["{upstream}"] if engine else [])]
    limits = ("--start-limit", "4", "--answer-limit", "6")
    return lastword("conformance", "server", *limits, *options, "--", *command, LASTWORD_API_KEY=key or API_KEY)


@pytest.fixture(scope="module")
def said_of() -> dict[str, Said]:
    """All at once: nearly all of the time is waiting."""
    modes = [mode for mode, _ in SENTENCES]
    with ThreadPoolExecutor(6) as pool:
        return dict(zip(modes, pool.map(lambda mode: hostile(mode, "--run", "good/answer"), modes), strict=True))


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("mode", "words"), SENTENCES, ids=[mode for mode, _ in SENTENCES])
def test_a_server_that_cannot_be_tested_is_a_sentence(said_of: dict[str, Said], mode: str, words: str) -> None:
    """In the time that there is."""
    said = said_of[mode]
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1), said
    assert words in said.err


@pytest.mark.parametrize(("mode", "case", "verdict", "reason"), VERDICTS, ids=[row[0] for row in VERDICTS])
def test_an_odd_answer_has_a_verdict(mode: str, case: str, verdict: str, reason: str, tmp_path: Path) -> None:
    """And the report can be read by everybody."""
    report = tmp_path / "report.json"
    said = hostile(mode, "--run", case, "--report", str(report), "--trace")
    (found,) = cases(report).values()
    assert found["verdict"] == verdict, found
    assert reason in " ".join(found.get("reasons", ()))
    assert "Traceback" not in said.err
    assert "\x1b" not in said.out + report.read_text("utf-8")


def test_a_vast_context_is_none() -> None:
    """No prompt is written that fills the memory."""
    said = hostile("vast-context", "--run", "request/overflow", "--run", "good/answer", engine=False)
    assert (said.status, "not declared: context (1)" in said.out) == (1, True), said
    assert _context({"max_model_len": True}) is None


def test_numbers_that_are_none_are_passed_over() -> None:
    """A page of metrics may hold anything."""
    text = "a 1e\na 1e999\na 2\nb ..\nb -\n"
    assert _counts(text, ("a", "b")) == {"a": 2.0}


def test_a_key_is_shown_nowhere(tmp_path: Path) -> None:
    """A server that says what it was sent; and a command that has the key and fails."""
    report, junit = tmp_path / "report.json", tmp_path / "report.xml"
    said = hostile(
        "echo", "--run", "request/**", "--run", "good/**", "--trace", "-v", "--report", str(report), "--junit", str(junit),
        key=KEY,
    )  # fmt: skip
    shown = said.out + said.err + report.read_text("utf-8") + junit.read_text("utf-8")
    assert ("$key" in shown, KEY in shown) == (True, False)
    failed = lastword("conformance", "server", "--api-key", KEY, "--", "sh", "-c", f"echo {{port}} {KEY}; exit 3")
    assert ("ended with status 3" in failed.err, KEY in failed.err) == (True, False), failed.err.replace(KEY, "…")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--url", "http://host.invalid:8000"], "nothing answers at http://host.invalid:8000 ("),
        (["--url", "http://a..b"], "nothing answers at http://a..b:80 (no name of a host)"),
        (["--url", "http://127.0.0.1:0"], "an address such as http://127.0.0.1:8000 is needed"),
        (["--url", "http://127.0.0.1:8000/?key=1"], "an address such as http://127.0.0.1:8000 is needed"),
        (["--url", "http://127.0.0.1:8000/a b"], "an address such as http://127.0.0.1:8000 is needed"),
        (["--url", "http://me:secret@127.0.0.1:8000"], "a key is given with --api-key"),
        (["--url", "http://127.0.0.1:9", "--api-key", "a\nb"], "--api-key: it has a character that no header may have"),
        (["--", "sleep", "60"], "or let the command take {port}"),
    ],
)
def test_an_option_that_makes_no_sense_is_a_sentence(options: list[str], words: str) -> None:
    """At once, with a remedy, and without a password."""
    said = lastword("conformance", "server", *options)
    assert (said.status, said.out) == (2, ""), said
    assert words.casefold() in said.err.casefold()
    assert [each for each in ("secret", "Traceback") if each in said.err] == []


def test_an_ipv6_address_is_written_in_brackets() -> None:
    """In the address, for the command and in the header ``host``."""
    host, port, tls, prefix = read_url("http://[::1]:8000/v1")
    assert (Target(host, port, tls, prefix).url, Target(host, port).address) == ("http://[::1]:8000", "[::1]:8000")
    with pytest.raises(ConformanceError):
        read_url("http://[::1")


def test_a_port_that_is_taken_is_not_tested_by_mistake() -> None:
    """Whatever listens there is no server of ours."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
        said = lastword("conformance", "server", "--url", url, "--", "sleep", "60")
    assert (said.status, f"--url {url}: something listens there already" in said.err) == (2, True), said


def test_a_second_ctrl_c_leaves_no_stubborn_server() -> None:
    """The time that a server gets to end itself can be cut short; its children end with it."""
    stubborn = (
        "import os, signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork(); "
        f"os.execv(sys.executable, [sys.executable, {str(SERVERS / 'broken.py')!r}, *sys.argv[1:]])"
    )
    command = [sys.executable, "-c", stubborn, "{port}", "{upstream}", "--on-sigterm", "ignore"]
    port = free_port()
    options = ("--url", f"http://127.0.0.1:{port}", "--run", "good/answer")
    with started("conformance", "server", *options, "--", *command) as process, socket.socket() as probe:
        until = time.monotonic() + 30
        while probe.connect_ex(("127.0.0.1", port)) != 0:
            assert time.monotonic() < until, "the server was not started"
            time.sleep(0.05)
        time.sleep(1)
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(20)
    assert (process.returncode, time.monotonic() - began < 4) == (130, True)
