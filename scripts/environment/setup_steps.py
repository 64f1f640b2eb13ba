"""How the set-up scripts run their steps: one run at a time, progress on stderr, the log's end in an error."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_started = time.monotonic()


class SetupError(Exception):
    """The environment cannot be made; the message says what is missing and what to do."""


def end_on_sigterm() -> None:
    """Let SIGTERM end the run as Ctrl-C does, so that an installer started here ends too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def say(text: str) -> None:
    """Print one progress line with the seconds since the start, on stderr (stdout is for ``--json``)."""
    print(f"[set-up {time.monotonic() - _started:6.1f}s] {text}", file=sys.stderr, flush=True)


@contextmanager
def only_one_run(lock_file: Path) -> Iterator[None]:
    """Hold a lock file; wait for another run to end, saying so.

    The kernel drops the lock when the last process that holds the open file dies. The installers inherit it, so that one
    which outlives a killed run is waited for too, and does not write into the next run's work.
    """
    with open(lock_file, "a+", encoding="utf-8") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            say(f"another run (pid {lock.read().strip() or 'unknown'}) is at work; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def run(argv: Sequence[str | Path], *, label: str, log: Path, env: dict[str, str] | None = None) -> None:
    """Run a command with its output in ``log``; print a line every ten seconds, and the log's tail if it fails."""
    say(label)
    with open(log, "ab") as sink:
        sink.write(f"\n$ {' '.join(map(str, argv))}\n".encode())
        sink.flush()
        with subprocess.Popen(
            [str(part) for part in argv], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=env, close_fds=False
        ) as child:
            try:
                while True:
                    try:
                        status = child.wait(timeout=10)
                        break
                    except subprocess.TimeoutExpired:
                        say(f"  … {label}: {last_line(log)}")
            except BaseException:  # Ctrl-C included: leave no installer behind
                child.kill()
                raise
    if status:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:])
        raise SetupError(f"{label} failed (exit {status}). The end of {log}:\n{tail}")


def last_line(log: Path) -> str:
    with open(log, "rb") as source:
        source.seek(max(0, log.stat().st_size - 4096))
        lines = source.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip()[:90] if lines else ""
