"""How a file is opened to which several processes append lines."""

from __future__ import annotations

import os
from typing import Final

_MODE: Final = 0o640
_FLAGS: Final = (
    os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe must not keep us
)


def open_for_lines(path: str) -> int:
    """A descriptor to append lines to ``path``, which is made if it is not there.

    Raises:
        OSError: it cannot be.
    """
    try:
        # For reading too: to see how the last line ends, and to need no reader of a pipe.
        return os.open(path, os.O_RDWR | _FLAGS, _MODE)
    except PermissionError:
        return os.open(path, os.O_WRONLY | _FLAGS, _MODE)
