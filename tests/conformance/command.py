"""Runs the real ``lastword`` command in a process of its own, and looks whether anything of it is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BROKEN = HERE / "broken"
MARK = "LASTWORD_TEST_MARK"


@dataclass(frozen=True)
class Said:
    """What a finished command said."""

    status: int
    out: str
    err: str


def adapter(name: str) -> list[str]:
    """The command line of a broken adapter."""
    return [sys.executable, str(BROKEN / f"{name}.py")]


def lastword(*arguments: str, timeout: float = 40, **environment: str) -> Said:
    """Run ``lastword`` to its end; it fails the test if a process outlives it."""
    with started(*arguments, **environment) as process:
        out, err = process.communicate(timeout=timeout)
    return Said(process.returncode, out, err)


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Start ``lastword`` as the leader of a group, as a terminal does; on leaving, nothing of it may be running."""
    mark = uuid.uuid4().hex
    kept = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "CI", "NO_COLOR", "FORCE_COLOR")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "lastword.cli", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**kept, MARK: mark, **environment},
        process_group=0,
    )
    try:
        yield process
        process.communicate(timeout=20)
        left = running(mark)
        assert not left, f"left running: {left}"
    finally:
        for number in (process.pid, *running(mark)):
            with _gone():
                os.kill(number, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@contextmanager
def _gone() -> Iterator[None]:
    try:
        yield
    except ProcessLookupError:  # it was quicker
        return


def running(mark: str) -> dict[int, str]:
    """Every process that has inherited the mark, whatever session it is in: its id and command line."""
    found: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it ended in this moment, or is somebody else's
            continue
    return found


def cases(report: Path) -> dict[str, dict[str, Any]]:
    """The cases of a report by their names."""
    return {each["name"]: each for each in json.loads(report.read_text(encoding="utf-8"))["cases"]}
