"""Whose turn it is on a machine that an engine keeps busy."""

from __future__ import annotations

import contextlib
import os


def go_first() -> None:
    """Let this thread have its turn as soon as it is due, where the system allows that (Linux, root).

    An engine's loops do not sleep.  Beside them a thread that waits for time or for a socket may be woken seconds late,
    and what it wanted to look at is then over, or what it measures is its own delay.  Children and further threads begin
    as ordinary ones.
    """
    if hasattr(os, "sched_setscheduler"):
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
