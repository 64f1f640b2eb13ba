"""The demo's servers: child processes that say ``ready URL`` and end with their standard input, however the demo ends."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Final

_START_LIMIT: Final = 60.0  # s for a server to come up; a model has to be read
_STOP_LIMIT: Final = 5.0  # s for it to leave before it is killed
_FLAG: Final = "--until-stdin-closes"


class DemoError(Exception):
    """The demo could not run; the message says why and what to do."""


@contextlib.contextmanager
def engine(*options: str) -> Iterator[str]:
    """Run the embedded engine; yield its base URL."""
    command = [sys.executable, "-m", "lastword_shim.engine.embedded", "--port", "0", _FLAG, *options]
    with _running(command, "the embedded engine") as url:
        yield url


@contextlib.contextmanager
def sidecar(upstream: str) -> Iterator[str]:
    """Run ``lastword shim`` in front of a server; yield its base URL."""
    command = [sys.executable, "-m", "lastword.cli", "shim", "--upstream", upstream, "--port", "0", _FLAG]
    with _running(command, "the sidecar") as url:
        yield url


@contextlib.contextmanager
def started(command: str) -> Iterator[str]:
    """Run an engine of the caller's; yield its base URL."""
    with _running([*shlex.split(command), _FLAG], "the engine") as url:
        yield url


@contextlib.contextmanager
def _running(command: Sequence[str], name: str) -> Iterator[str]:
    with tempfile.TemporaryFile() as log:
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        except OSError as error:
            raise DemoError(f"{name} cannot be started: {command[0]}: {error.strerror}") from error
        try:
            yield _ready(child, log, name)
        finally:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.close()
            try:
                child.wait(_STOP_LIMIT)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            child.stdout.close()


def _ready(child: subprocess.Popen[bytes], log: IO[bytes], name: str) -> str:
    assert child.stdout is not None
    limit = threading.Timer(_START_LIMIT, child.kill)
    limit.start()
    try:
        line = child.stdout.readline().decode(errors="replace")
    finally:
        limit.cancel()
    if not line.startswith("ready "):
        child.kill()  # where it said something else
        child.wait(_STOP_LIMIT)
        log.seek(0)
        said = log.read().decode(errors="replace")[-2000:].strip()
        raise DemoError(f"{name} did not start: {said or 'it said nothing'}")
    return line.split()[1]
