"""The server under test as a process of ours: started, waited for, told to end, and ended with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import Final

from lastword.conformance._groups import signal_group
from lastword.conformance._results import ConformanceError
from lastword.conformance.server._probe import get
from lastword.conformance.server._request import Target

START_LIMIT: Final = 180.0
"""Seconds that a server has to answer for the first time: engines load models."""
_TO_LEAVE: Final = 5.0  # s between SIGTERM and SIGKILL when the run is over
_TAIL: Final = 30  # lines of the server's output that an error shows
_WIDTH: Final = 1000  # characters of one of them
_TAIL_BYTES: Final = 2**14
_ASKING: Final = 5.0  # s that one look at a server that is starting may take
_NOT_YET: Final = 503


class ServerProcess:
    """``command`` with ``{upstream}``, ``{upstream_port}``, ``{port}`` and ``{url}`` filled in; starts as often as is needed."""

    def __init__(
        self, command: Sequence[str], target: Target, *, upstream: str | None, patience: float = START_LIMIT
    ) -> None:
        """``upstream`` is the scripted engine's ``host:port``; a command that names it where there is none is refused."""
        known = {"{port}": str(target.port), "{url}": target.url}
        if upstream is not None:
            known |= {"{upstream}": f"http://{upstream}", "{upstream_port}": upstream.rpartition(":")[2]}
        self._command = [_filled(part, known) for part in command]
        self._target, self._patience = target, patience
        self._process: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the run)
        self._stopped = self._was_there = False

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def ends_within(self, seconds: float) -> bool:
        """Whether it has ended, or does so in this time."""
        if self._process is None:
            return True
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return not self.alive

    def start(self) -> None:
        """Start it and wait until it answers; ``ConformanceError`` with the end of its output if it does not."""
        self.end()
        self._see_that_the_port_is_free()
        self._output.seek(0)
        self._output.truncate()
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its group is all that it starts
            )
        except OSError as error:
            raise ConformanceError(f"{self._command[0]}: cannot be started: {error.strerror}") from error
        self._was_there = True
        deadline = time.monotonic() + self._patience
        while not self._answers(min(_ASKING, self._patience)):
            if self._stopped:
                raise ConformanceError("interrupted while the server was starting")
            if not self.alive:
                raise self._error(f"ended with status {self._process.returncode} before it answered")
            if time.monotonic() > deadline:
                self.end()
                raise self._error(f"did not answer at {self._target.url} within {self._patience:g} s")
            time.sleep(0.1)

    def terminate(self) -> None:
        """Ask it to end, as an operator would: SIGTERM to the process that was started, not to its group."""
        if self._process is not None:
            self._process.terminate()

    def end(self) -> None:
        """End it and its whole group; nothing is left when this returns."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            if process.poll() is None:
                signal_group(process.pid, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_TO_LEAVE)
        finally:  # a second Ctrl-C included
            signal_group(process.pid, signal.SIGKILL)
            process.wait()

    def give_up(self) -> None:
        """The run is over: what waits for a start stops waiting."""
        self._stopped = True

    def close(self) -> None:
        """End it for good."""
        self.give_up()
        self.end()
        self._output.close()

    def _see_that_the_port_is_free(self) -> None:
        """Refuse to start where something listens: the cases would be played against that. The dead may need a moment."""
        until = time.monotonic() + (_TO_LEAVE if self._was_there else 0)
        while True:
            try:
                socket.create_connection((self._target.host, self._target.port), timeout=1).close()
            except (OSError, UnicodeError):
                return
            if self._stopped or time.monotonic() > until:
                raise ConformanceError(
                    f"--url {self._target.url}: something listens there already: end it, or take another port"
                )
            time.sleep(0.1)

    def _answers(self, limit: float) -> bool:
        status = asyncio.run(get(self._target, "/v1/models", limit=limit)).status
        return status is not None and status != _NOT_YET

    def _error(self, what: str) -> ConformanceError:
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _TAIL_BYTES))
        lines = self._output.read(_TAIL_BYTES).decode("utf-8", "replace").splitlines()[-_TAIL:]
        lines = [line[:_WIDTH] for line in lines]
        said = "\n  ".join(["it said:", *lines]) if lines else "it said nothing"
        text = f"the server `{shlex.join(self._command)}` {what}; {said}"
        return ConformanceError(self._target.without_key(text))


def _filled(part: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        part = part.replace(name, value)
    if "{upstream" in part:
        raise ConformanceError(f"{part}: there is no scripted engine: add --upstream-port 0")
    return part
