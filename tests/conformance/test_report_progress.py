"""The live bar shows where a run is, is gone when it ends however it ends, and never gets into a pipe."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from tests.conformance.example_runs import case_of, result_of, run_of

from lastword.conformance._results import Verdict
from lastword.conformance.show import _progress

MADE = run_of().implementation
PLAYS = """
import time
from rich.console import Console
from tests.conformance.example_runs import case_of, result_of, run_of
from lastword.conformance.show import _progress
from lastword.conformance._results import Verdict

with _progress.listener(Console()) as listener:
    listener.begins(run_of().implementation, 3)
    for name, verdict in (("a/one", Verdict.SILENT), ("a/two", Verdict.WRONG_CODE), ("a/three@7", Verdict.RIGHT)):
        listener.plays(case_of(name))
        time.sleep(float(__import__("sys").argv[1]))
        listener.ended(result_of(case_of(name), verdict))
print("the table")
"""


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


def on_a_terminal(seconds: str, *, interrupt: bool = False) -> tuple[str, int]:
    """Run ``PLAYS`` on a pseudo-terminal of 60 columns; what it wrote, and its exit status."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment |= {"TERM": "xterm", "COLUMNS": "60", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", PLAYS, seconds]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment) as child:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 65536):
                written += part
                if interrupt and b"playing: a/one" in written:
                    child.send_signal(signal.SIGINT)
                    interrupt = False
        except OSError:  # Linux says so when the other side is gone
            pass
        finally:
            os.close(ours)
    return written.decode(), child.returncode


def test_a_terminal_shows_what_is_played_and_what_failed() -> None:
    written, status = on_a_terminal("0.6")
    assert status == 0
    assert re.search(r"2/3.*━", written)
    assert "not right so far: none" in written
    assert "not right so far: 1 silent, 1 wrong code" in written
    assert "playing: a/three@7" in written
    assert written.rpartition("\x1b[2K")[2].endswith("the table\r\n")


def test_ctrl_c_leaves_a_clean_terminal() -> None:
    written, status = on_a_terminal("60", interrupt=True)
    assert status == -signal.SIGINT
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1
    last_picture = written.rpartition("playing: ")[2]
    assert last_picture.count("\x1b[2K") >= 3  # each of its lines is wiped


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if colours are forced, which makes rich take it for a terminal."""
    monkeypatch.delenv("CI", raising=False)
    for name, value in {"TERM": "xterm", "FORCE_COLOR": "1", "PYTHONPATH": str(Path(__file__).parents[2])}.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-c", PLAYS, "0.01"], capture_output=True, text=True, check=True, timeout=30)
    assert (done.stdout, done.stderr) == ("the table\n", "")


def test_ci_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with _progress.listener(Console(file=out)) as listener:
        listener.begins(MADE, 1)
        listener.plays(case_of("a/one"))
        time.sleep(0.3)
        listener.ended(result_of(case_of("a/one"), Verdict.HANG))
    assert out.getvalue() == ""


def test_the_last_case_takes_the_bar_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    listener = _progress.listener(Console(file=out, width=60))
    listener.begins(MADE, 1)
    listener.plays(case_of("a/one"))
    listener.ended(result_of(case_of("a/one"), Verdict.HANG))
    assert (listener.implementation, [each.verdict for each in listener.results]) == (MADE, [Verdict.HANG])
    assert out.getvalue().endswith("\x1b[2K")
    assert "\x1b[?25h" in out.getvalue()
