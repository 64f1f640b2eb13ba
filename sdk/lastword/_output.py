"""What programs of this package do with output that nobody reads."""

from __future__ import annotations

import contextlib
import os
from typing import TextIO


def discard(*streams: TextIO | None) -> None:
    """Send what is still buffered nowhere, or Python complains about it when it exits; a terminal is left as it is."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        with contextlib.suppress(OSError, ValueError):  # a stream without a descriptor
            if stream is not None and not stream.isatty():
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
