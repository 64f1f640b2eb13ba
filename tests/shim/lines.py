"""Lines for the sinks of records, and processes that write some."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = os.pathsep.join([str(ROOT / "sdk"), str(ROOT / "server_shim")])
WRITES = """
import os, sys, time
from lastword_shim.account.sink import FileSink, StreamSink
from lastword_shim.account.writer import Writer
dropped = []
name, path, number, max_bytes, keep = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
sink = StreamSink(1) if path == "-" else FileSink(path, max_bytes=max_bytes or None, keep=keep)
writer = Writer(sink, dropped.append)
def put(first, last):
    for count in range(first, last):
        writer.put(b'{"by": "%s", "count": %d, "pad": "%s"}\\n' % (name.encode(), count, b"x" * 200))
put(0, number)
"""


def line(count: int, size: int = 100) -> bytes:
    return json.dumps({"count": count, "pad": "x" * size}).encode() + b"\n"


def counts(*paths: Path) -> list[int]:
    """The counts of every line of the files; fails on half a line."""
    return [json.loads(text)["count"] for path in paths for text in path.read_bytes().splitlines()]


def until(condition: Callable[[], object], what: str, seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {seconds} s"
        time.sleep(0.005)


class Dropped:
    def __init__(self) -> None:
        self.number = 0

    def __call__(self, number: int) -> None:
        self.number += number


def start(
    name: str,
    path: Path | str,
    number: int,
    *,
    max_bytes: int = 0,
    keep: int = 0,
    then: str = "",
    stdout: int | None = None,
) -> subprocess.Popen[bytes]:
    """A process that writes ``number`` lines and goes on with ``then``."""
    argv = [sys.executable, "-c", WRITES + then, name, str(path), str(number), str(max_bytes), str(keep)]
    return subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": PACKAGES}, stdout=stdout, stderr=subprocess.PIPE)
