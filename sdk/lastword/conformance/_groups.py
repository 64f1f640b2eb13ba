"""Processes of ours that lead a group: whatever they start is ended with them."""

from __future__ import annotations

import contextlib
import os


def signal_group(leader: int, number: int) -> None:
    """Send a signal to a process and to all that it started and that stayed in its group; none may be left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: a group of zombies permits nothing
        os.killpg(leader, number)
