"""Where lines go: a file that is set aside once it is large, or a stream such as standard output.

The standard library's handlers rotate for one process only, print what fails and write half lines to a full disk; here
several processes may append to one file.  Each takes the lock of the very file that stands at the path (``flock``),
looks whether it still does, and only then sets it aside or writes; so a file that was moved or removed by somebody else
is begun anew, and half a line is either taken back or, if its writer died in it, ended before the next one.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import select
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, Protocol

from lastword_shim._appending import open_for_lines

try:
    import fcntl
except ImportError:  # not POSIX: one process a file
    fcntl = None  # type: ignore[assignment]

_log: Final = logging.getLogger("lastword_shim")
_DESCRIPTOR: Final = re.compile(r"/dev/fd/|/proc/[^/]+/(?:task/[^/]+/)?fd/")
_MOST_LINKS: Final = 40
LOCK_PATIENCE: Final = 1.0
"""Seconds that another process may hold the file; writing takes it milliseconds."""
STREAM_PATIENCE: Final = 0.5
"""Seconds that a stream may be full before that counts as a failure; whoever waits can be stopped in between."""


class Sink(Protocol):
    """A place for lines."""

    def send(self, lines: Sequence[bytes]) -> int:
        """Write the first of ``lines``, each whole; how many.

        Raises:
            OSError: not one could be written; ``strerror`` says why.
        """

    def forget(self) -> None:
        """Let go of what is open, as after a fork; the next `send` opens it again."""


class StreamSink:
    """An open descriptor that is not ours to rotate.  A line is one write, so that it stays whole in a shared pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""  # of a line that is half written: it has to be ended first

    def send(self, lines: Sequence[bytes]) -> int:
        """Write a line, or what is left of one."""
        if not self._rest:
            self._rest = lines[0]
        while self._rest:
            try:
                written = os.write(self._descriptor, self._rest)
            except BlockingIOError:
                if not select.select((), (self._descriptor,), (), STREAM_PATIENCE)[1]:
                    raise OSError(errno.EAGAIN, "nobody reads what is in the pipe") from None
            else:
                self._rest = self._rest[written:]
        return 1

    def forget(self) -> None:
        """The descriptor is not ours."""
        self._rest = b""


class FileSink:
    """The file at ``path``: set aside as ``path.1``, ``path.2`` … before it is larger than ``max_bytes`` (None: never);
    ``keep`` of those are kept.  One that cannot be set aside is written to all the same: ``on_stuck`` is told each time
    that it has grown by another ``max_bytes``, the log once.  A path that is no plain file, or names an open one as
    ``/dev/stdout`` does, is written to like a stream."""

    def __init__(
        self,
        path: str,
        *,
        max_bytes: int | None = None,
        keep: int = 0,
        on_stuck: Callable[[], object] = lambda: None,
    ) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._on_stuck = on_stuck
        self._stuck_at: int | None = None
        self._descriptor: int | None = None
        self._stream: StreamSink | None = None

    def send(self, lines: Sequence[bytes]) -> int:
        """Write as many of the lines as the file has room for; begin a new one if that is none."""
        while True:
            descriptor = self._hold()
            if self._stream is not None:
                return self._stream.send(lines)
            try:
                size = os.fstat(descriptor).st_size
                fitting = self._fitting(lines, size)
                if not fitting and not self._is_set_aside(size):
                    fitting = self._fitting(lines, size) or 1
                if fitting:
                    try:
                        return _append(descriptor, lines[:fitting], size)
                    except OSError as error:
                        if error.errno != errno.EFBIG or not size or self._max_bytes is None:
                            raise
                    self._set_aside()  # what is too large for this process's limit may begin a new file
            finally:
                _unlock(descriptor)

    def forget(self) -> None:
        """Close it."""
        descriptor, self._descriptor, self._stream = self._descriptor, None, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)

    def _fitting(self, lines: Sequence[bytes], size: int) -> int:
        """How many of the lines the file takes; an empty one takes any line."""
        if self._max_bytes is None:
            return len(lines)
        beyond = self._stuck_at if self._stuck_at is not None and self._stuck_at <= size else 0
        room, fitting = beyond + self._max_bytes - size, 0
        for line in lines:
            room -= len(line)
            if room < 0:
                break
            fitting += 1
        return fitting or (0 if size else 1)

    def _hold(self) -> int:
        """The descriptor of what stands at the path now, locked if it is a plain file."""
        while True:
            if self._descriptor is None:
                self._descriptor = open_for_lines(self._path)
                if not stat.S_ISREG(os.fstat(self._descriptor).st_mode) or _names_a_descriptor(self._path):
                    self._stream = StreamSink(self._descriptor)
            if self._stream is not None:
                return self._descriptor
            _lock(self._descriptor)
            if self._stands():
                return self._descriptor
            self.forget()  # which unlocks it

    def _stands(self) -> bool:
        assert self._descriptor is not None
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def _is_set_aside(self, size: int) -> bool:
        """Set it aside if that can be; it is tried again once it has grown by as much as it may hold."""
        try:
            self._set_aside()
        except FileNotFoundError:  # somebody else has
            return True
        except OSError as problem:
            if self._stuck_at is None:
                what = problem.strerror or type(problem).__name__
                _log.error("the file of lifecycle records cannot be set aside: %s; it grows on beyond its bound", what)
            self._stuck_at = size
            self._on_stuck()
            return False
        if self._stuck_at is not None:
            _log.warning("the file of lifecycle records is set aside again")
        self._stuck_at = None
        return True

    def _set_aside(self) -> None:
        """Only who holds the lock of the file at the path gets here, and there is none at the path until the end."""
        path = os.path.realpath(self._path)  # a link to the file stays, and leads to the new one
        taken = next((n for n in range(1, self._keep + 1) if os.path.isdir(f"{path}.{n}")), None)
        if taken is not None:  # before anything is moved; and somebody's directory is not ours to move
            raise OSError(errno.EISDIR, f"{os.path.basename(path)}.{taken} is a directory")
        for number in count(self._keep + 1):  # what was kept under an earlier setting
            if not _removed(f"{path}.{number}"):
                break
        for number in range(self._keep - 1, 0, -1):
            with suppress(FileNotFoundError):
                os.replace(f"{path}.{number}", f"{path}.{number + 1}")
        if self._keep:
            os.replace(path, f"{path}.1")
        else:
            os.unlink(path)


def _names_a_descriptor(path: str) -> bool:
    """Whether the path, or a link on its way, is that of an open file, whose name is not ours to change."""
    for _ in range(_MOST_LINKS):
        if _DESCRIPTOR.match(os.path.abspath(path)):
            return True
        if not os.path.islink(path):
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return False


def _append(descriptor: int, lines: Sequence[bytes], size: int) -> int:
    """Write the lines behind ``size`` bytes; those that did not fit whole are taken back."""
    start = b"" if _ends_a_line(descriptor, size) else b"\n"
    data, written = start + b"".join(lines), 0
    try:
        while written < len(data):
            written += os.write(descriptor, data[written:])
    except OSError:
        whole = data.rfind(b"\n", len(start), written) + 1
        os.ftruncate(descriptor, size + whole)
        if not whole:
            raise
        return data.count(b"\n", len(start), whole)
    return len(lines)


def _ends_a_line(descriptor: int, size: int) -> bool:
    try:
        return not size or os.pread(descriptor, 1, size - 1) == b"\n"
    except OSError:  # it may be written only
        return True


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + LOCK_PATIENCE
    while fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(errno.ETIMEDOUT, "another process does not let go of its lock") from None
            time.sleep(0.002)
        except OSError:  # a file system without locks: then no process knows of another
            return
        else:
            return


def _unlock(descriptor: int) -> None:
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError:
        if os.path.isdir(path):  # and none of ours
            return False
        raise
    return True
