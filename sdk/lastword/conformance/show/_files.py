"""Files that a run writes: whole or not at all, so that an interrupted run leaves what was there."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from pathlib import Path
from typing import Final

from lastword.conformance._results import ConformanceError

_FILES: Final = 32  # that any run has open
_FILES_OF_A_JOB: Final = 16  # an adapter's pipes, a server's sockets
_NOT_BESIDE: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)  # the file may be written, its directory not


def write(path: Path, text: str) -> None:
    """Put ``text`` in the place of the file in one step; raises ``OSError``. Pipes and devices are written as they are."""
    if not _is_plain(path):
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    target = Path(os.path.realpath(path))  # a link stays
    beside = target.with_name(f".lastword-{secrets.token_hex(4)}")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except OSError as error:
        if error.errno not in _NOT_BESIDE:
            raise
        target.write_text(text, encoding="utf-8", newline="\n")
    finally:
        with contextlib.suppress(OSError):  # it has moved, or it never was
            beside.unlink()


def check_writable(path: Path) -> None:
    """Raise ``OSError`` if the file could not be written, and leave no trace of having tried."""
    if not _is_plain(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(path, os.W_OK):  # opening a pipe waits for its reader, and closing it ends that
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return
    target = Path(os.path.realpath(path))
    there = target.exists()
    with target.open("a", encoding="utf-8"):
        pass
    if not there:
        target.unlink()


def same_file(one: Path, other: Path) -> bool:
    """Whether both name one plain file, there already or not."""
    return _is_plain(one) and os.path.realpath(one) == os.path.realpath(other)


def have_files(jobs: int) -> None:
    """See that so many cases at a time have the sockets and pipes that they need; ``ConformanceError`` if they cannot."""
    import resource  # POSIX has it, and this module is read elsewhere, too

    needed = _FILES + _FILES_OF_A_JOB * jobs
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = needed if hard == resource.RLIM_INFINITY else hard
    if most < needed:
        raise ConformanceError(
            f"--jobs {jobs} needs {needed} open files, and {hard} are allowed: take fewer, or see `ulimit -Hn`"
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _is_plain(path: Path) -> bool:
    """Whether it is a plain file, or will be one. Another name of an open file (``/dev/stdout``) cannot be replaced."""
    return Path(os.path.abspath(path)).parts[1:2] not in (("dev",), ("proc",)) and (
        path.is_file() or not os.path.lexists(path) or not path.exists()
    )
