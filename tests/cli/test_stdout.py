"""What a command does when its output cannot be written; `report`, which reads files too, is in tests/report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADAPTER = [sys.executable, str(ROOT / "tests/conformance/adapters/lastword_sync.py")]
COMMANDS = (
    ["conformance", "list"],
    ["conformance", "list", "--json"],
    ["conformance", "client", "--run", "ending/cut-chunked", "--", *ADAPTER],
    ["contract", "verify", str(ROOT / "contract")],
)
NAMES = ["list", "list --json", "client", "verify"]


def run(command: list[str], out: int, *, unbuffered: bool = False, err: int = subprocess.PIPE) -> tuple[int, str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    env |= {"PYTHONUNBUFFERED": "1"} if unbuffered else {}
    argv = [sys.executable, "-m", "lastword.cli", *command]
    done = subprocess.run(argv, env=env, stdout=out, stderr=err, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


@pytest.fixture
def nobody() -> Iterator[int]:
    """A pipe that nobody reads."""
    reader, sink = os.pipe()
    os.close(reader)
    yield sink
    os.close(sink)


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_a_reader_that_has_left_is_no_error_and_no_answer(command: list[str], unbuffered: bool, nobody: int) -> None:
    """`lastword … | head`: not 1, which says that the answer is no, and not a word."""
    assert run(command, nobody, unbuffered=unbuffered) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("command", [*COMMANDS, ["report", "nowhere"]], ids=[*NAMES, "error"])
def test_nor_is_a_reader_of_both_streams(command: list[str], nobody: int) -> None:
    """`lastword … 2>&1 | head`."""
    assert run(command, nobody, err=nobody)[0] == 128 + signal.SIGPIPE


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_a_full_disk_is_told(command: list[str]) -> None:
    """And is no success."""
    out = os.open("/dev/full", os.O_WRONLY)
    status, said = run(command, out)
    os.close(out)
    assert (status, said) == (2, "lastword: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_no_output_at_all_is_fine(command: list[str]) -> None:
    """`>&-`, as some supervisors start what they run."""
    argv = ["sh", "-c", 'exec "$0" -m lastword.cli "$@" >&-', sys.executable, *command]
    done = subprocess.run(argv, stderr=subprocess.PIPE, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
