"""A child process's standard streams, read and written with a time limit and without threads.

The child is the leader of a session of its own: Ctrl-C does not reach it, and whatever it starts dies with it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from typing import IO, Final

from lastword.conformance._groups import signal_group

KEPT: Final = 16_384  # bytes of stderr that are kept, the last ones
LONGEST_LINE: Final = 16 * 1024 * 1024  # bytes; an answer may hold a large text
_ROUND: Final = 65_536  # bytes of one read or write
_LOOK: Final = 0.5  # s between two looks whether the process is still there
_BRIEF: Final = 0.02  # s between two such looks when it should be going


class Child:
    """A process of its own session; ``OSError`` if it cannot be started."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._lines: deque[bytes] = deque()
        self._partial = bytearray()
        self._unsent = bytearray()
        self._stderr: deque[bytes] = deque()
        self._selector = selectors.DefaultSelector()
        for stream in (self._stdout, self._log):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)
        os.set_blocking(self._stdin.fileno(), False)
        self._killed = False
        self.ended = False  # nothing more will come on stdout

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def _log(self) -> IO[bytes]:
        assert self._process.stderr is not None
        return self._process.stderr

    # -- lines

    def send(self, line: bytes) -> None:
        """Have a line sent: it goes out while ``line()`` waits."""
        if not self._unsent and not self._stdin.closed:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        self._unsent += line

    def line(self, until: float) -> bytes | None:
        """Give the next line of stdout; None at ``until`` (monotonic time), or at once when no more can come."""
        while not self._lines and not self.ended:
            left = until - time.monotonic()
            if left <= 0:
                return None
            gone = self._process.poll() is not None or self._killed  # looked at first: what it wrote is there by now
            self._pump(0 if gone else min(left, _LOOK))
            if gone and not self._lines:  # whatever it started may hold its stdout open, so that no EOF comes
                self.ended = True
        return self._lines.popleft() if self._lines else None

    def waiting(self) -> bytes | None:
        """Give a line that is there already."""
        self._pump(0)
        return self._lines.popleft() if self._lines else None

    @property
    def stderr(self) -> str:
        """The end of what it wrote to stderr."""
        with contextlib.suppress(OSError, ValueError, KeyError):  # closed already: what was read is all there is
            self._pump(0)
        return b"".join(self._stderr)[-KEPT:].decode("utf-8", "replace")

    def _pump(self, seconds: float) -> None:
        """Do what can be done on the pipes now, or wait for that for so long."""
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._stdin:
                self._write()
            elif data := os.read(key.fd, _ROUND):
                self._take(data) if key.fileobj is self._stdout else self._keep(data)
            else:
                self._selector.unregister(key.fileobj)
                self.ended = self.ended or key.fileobj is self._stdout

    def _write(self) -> None:
        try:
            del self._unsent[: os.write(self._stdin.fileno(), self._unsent[:_ROUND])]
        except BrokenPipeError:  # it ended, or closed its stdin: stdout will tell
            self._unsent.clear()
        if not self._unsent:
            self._selector.unregister(self._stdin)

    def _take(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._partial += first
        for rest in others:
            self._lines.append(bytes(self._partial))
            self._partial = bytearray(rest)
        if len(self._partial) > LONGEST_LINE:
            self._lines.append(bytes(self._partial))
            self._partial.clear()

    def _keep(self, data: bytes) -> None:
        self._stderr.append(data)
        while sum(map(len, self._stderr)) > KEPT + _ROUND:
            self._stderr.popleft()

    # -- the end

    def close_stdin(self) -> None:
        """Send what is left, as far as it goes without waiting, and then EOF."""
        with contextlib.suppress(OSError):
            os.write(self._stdin.fileno(), self._unsent)
        if self._unsent:
            self._selector.unregister(self._stdin)
            self._unsent.clear()
        with contextlib.suppress(OSError):
            self._stdin.close()

    def wait(self, until: float) -> int | None:
        """Give the exit status (negative: a signal's number); None if it goes on until then."""
        while (status := self._process.poll()) is None and (left := until - time.monotonic()) > 0:
            self._pump(min(left, _BRIEF))
        return status

    def signal(self, number: int) -> None:
        """Send a signal to the process and to all that it started and that stayed in its group."""
        signal_group(self._process.pid, number)

    def kill(self) -> None:
        """End the whole group now. Any thread may call this; whoever waits for a line wakes up."""
        self._killed = True
        self.signal(signal.SIGKILL)

    def dispose(self) -> None:
        """Kill what is left, and close everything. Call it in the thread that reads."""
        self.kill()
        self._process.wait()
        self._selector.close()
        for stream in (self._stdin, self._stdout, self._log):
            with contextlib.suppress(OSError):
                stream.close()
