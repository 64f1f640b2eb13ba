"""What a command does when its output cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

COMMANDS = (
    ["--help"],
    ["--version"],
    ["conformance", "list"],
    ["conformance", "list", "--json"],
    ["contract", "verify", "contract"],
    ["report", "--help"],
    ["shim", "--settings"],
)


def run(command: list[str], out: int, *, unbuffered: bool) -> tuple[int, str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    env |= {"PYTHONUNBUFFERED": "1"} if unbuffered else {}
    argv = [sys.executable, "-m", "lastword.cli", *command]
    done = subprocess.run(argv, env=env, stdout=out, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_reader_that_has_left_is_no_error_and_no_answer(command: list[str], unbuffered: bool) -> None:
    """`lastword … | head`: not 1, which says that the answer is no, and not a word."""
    reader, out = os.pipe()
    os.close(reader)
    told = run(command, out, unbuffered=unbuffered)
    os.close(out)
    assert told == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_full_disk_is_told(command: list[str]) -> None:
    """And is no success."""
    out = os.open("/dev/full", os.O_WRONLY)
    status, said = run(command, out, unbuffered=False)
    os.close(out)
    assert status == 2
    assert said.startswith("lastword: ")
    assert said.endswith("No space left on device\n")
    assert "Traceback" not in said


def test_no_output_at_all_is_fine() -> None:
    """`>&-`, as some supervisors start what they run."""
    argv = ["sh", "-c", 'exec "$0" -m lastword.cli --version >&-', sys.executable]
    done = subprocess.run(argv, stderr=subprocess.PIPE, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
