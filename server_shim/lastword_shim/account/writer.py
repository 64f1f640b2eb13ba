"""Lines on their way to a sink: kept in memory up to a bound, written by a thread of their own.

Whoever hands a line over never waits, whatever the sink does.  A line that finds no room is dropped and counted.  The
thread holds up nobody's exit: the interpreter gives it `EXIT_PATIENCE` seconds for what is left.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final
from weakref import WeakSet

from lastword_shim.account.sink import Sink

MOST_BYTES: Final = 8 * 1024 * 1024
"""What may wait in memory: some 8,000 records."""
EXIT_PATIENCE: Final = 2.0
"""Seconds at the interpreter's exit, for all writers together."""
RETRY: Final = 1.0
"""Seconds between two tries at a sink that fails."""
_BATCH: Final = 256
_log: Final = logging.getLogger("lastword_shim")
_ALL: Final[WeakSet[Writer]] = WeakSet()  # for the exit, and for a fork


class Writer:
    """Writes lines to ``sink`` in order; ``on_drop`` is told how many were dropped."""

    def __init__(self, sink: Sink, on_drop: Callable[[int], object], *, most_bytes: int = MOST_BYTES) -> None:
        self._sink = sink
        self._on_drop = on_drop
        self._most_bytes = most_bytes
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._closing = False
        self._dropped = 0
        self._failing = False

    def put(self, line: bytes) -> None:
        """Hand over one line with its newline.  Never waits, never raises."""
        with self._changed:
            takes = not self._closing and self._bytes + len(line) <= self._most_bytes and self._is_started()
            if takes:
                self._lines.append(line)
                self._bytes += len(line)
                self._changed.notify_all()
            else:
                self._dropped += 1
            is_first = self._dropped == 1
        if not takes:
            self._on_drop(1)
            if is_first:  # since all was well
                _log.error(
                    "lifecycle records are dropped: they come faster than they can be written, if they can at all"
                )

    @property
    def idle(self) -> bool:
        """Whether everything has been written."""
        return not self._lines

    async def drained(self, patience: float) -> bool:
        """Wait until everything has been written, for at most ``patience`` seconds; whether it has."""
        deadline = time.monotonic() + patience
        while not self.idle and time.monotonic() < deadline:  # noqa: ASYNC110 (the other side is a thread)
            await asyncio.sleep(0.005)
        return self.idle

    def close(self, patience: float = EXIT_PATIENCE) -> None:
        """Take no more, and give what is left ``patience`` seconds."""
        self.stop()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(max(patience, 0.0))
        with self._changed:
            left = len(self._lines)
            self._lines.clear()
            self._bytes = 0
        if left:
            self._on_drop(left)
            _log.error("%d lifecycle records could not be written before the end", left)

    def stop(self) -> None:
        """Take no more; the thread ends once it has written what is left, or could not."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def forget(self) -> None:
        """Begin anew in the child of a fork: what waits is its parent's to write."""
        self._begin()
        self._sink.forget()

    def _is_started(self) -> bool:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="lastword-records", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads, or the interpreter is ending
                return False
            self._thread = thread
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._lines and not self._closing:
                    self._changed.wait()
                batch = list(islice(self._lines, _BATCH))
            if not batch:
                break
            try:
                taken = self._sink.send(batch)
            except OSError as problem:
                if not self._go_on_after(problem):
                    break
            else:
                self._written(batch[:taken])
        self._sink.forget()

    def _go_on_after(self, problem: OSError) -> bool:
        """Say what is wrong, once, and wait a while; False if nobody wants to wait."""
        if not self._failing:
            what = problem.strerror or type(problem).__name__
            _log.error("lifecycle records cannot be written: %s; some are kept in memory until they can", what)
            self._failing = True
        with self._changed:
            return not self._changed.wait_for(lambda: self._closing, RETRY)

    def _written(self, lines: list[bytes]) -> None:
        with self._changed:
            for line in lines:
                if self._lines:  # the end may have given up on them meanwhile
                    self._lines.popleft()
                    self._bytes -= len(line)
            well = not self._lines and (self._failing or self._dropped)
            dropped = self._dropped
            if well:
                self._failing, self._dropped = False, 0
        if well:
            _log.warning("lifecycle records are written again; %d were dropped meanwhile", dropped)


@atexit.register
def _close_all() -> None:
    deadline = time.monotonic() + EXIT_PATIENCE
    for writer in list(_ALL):
        writer.stop()
    for writer in list(_ALL):
        writer.close(deadline - time.monotonic())


def _forget_all() -> None:
    for writer in list(_ALL):
        writer.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
