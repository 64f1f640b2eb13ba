"""Standard output of every command: in any encoding, and for as long as somebody reads it."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, Final

_SIGPIPE: Final = 128 + 13  # as shells have it


class _Pipe(io.FileIO):
    """Whoever reads on may have seen enough (``| head``): that is no error, and not what the statuses 1 and 2 mean.

    Nowhere else can that be told from a command's own pipes and sockets; Python's way to end by the signal itself would
    make no difference between them either.
    """

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)  # for what is still buffered, or Python complains at its exit
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            raise SystemExit(_SIGPIPE) from None


def prepare() -> None:
    """Replace ``sys.stdout``.  What an encoding lacks is written as its number there, and on standard error."""
    old = sys.stdout
    if isinstance(old, io.TextIOWrapper):
        out = io.BufferedWriter(_Pipe(old.fileno(), "wb", closefd=False))
        sys.stdout = io.TextIOWrapper(
            out, old.encoding, "backslashreplace", line_buffering=old.line_buffering, write_through=old.write_through
        )
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")


def finish() -> None:
    """Write what is still buffered, while there is somebody to tell that it cannot be written."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        try:
            sys.stdout.flush()
        except OSError as error:
            sys.stdout = None  # or Python tries again at its exit
            print(f"lastword: standard output: {error}", file=sys.stderr)
            raise SystemExit(2) from None
