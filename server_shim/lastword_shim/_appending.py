"""How a file is opened to which several processes append lines."""

from __future__ import annotations

import errno
import os
from typing import Final

_MODE: Final = 0o640
_FLAGS: Final = os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe must not keep us


def open_for_lines(path: str) -> int:
    """A descriptor to append lines to ``path``, which is made if it is not there.

    Raises:
        OSError: it cannot be.
    """
    return _open(path, _FLAGS | os.O_CREAT)


def look_for_lines(path: str) -> None:
    """Whether `open_for_lines` would do, as far as that can be told without making the file.

    Raises:
        OSError: it would not.
    """
    try:
        os.close(_open(path, _FLAGS))
    except FileNotFoundError:
        folder = os.path.dirname(os.path.realpath(path))
        if not os.access(folder, os.W_OK | os.X_OK):
            missing = errno.EACCES if os.path.isdir(folder) else errno.ENOENT
            raise OSError(missing, os.strerror(missing), path) from None


def _open(path: str, flags: int) -> int:
    try:
        # For reading too: to see how the last line ends, and to need no reader of a pipe.
        return os.open(path, os.O_RDWR | flags, _MODE)
    except PermissionError:
        return os.open(path, os.O_WRONLY | flags, _MODE)
