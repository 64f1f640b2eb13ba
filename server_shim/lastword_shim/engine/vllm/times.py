"""vLLM's own clock readings of a generation (``RequestStateStats``), as durations.

They are the engine's monotonic clock, which may be another machine's: only differences mean something here.  Absent with
``--disable-log-stats``; then the shim's own clock tells.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

from lastword_shim.engine import Ticket

_NAMES: Final = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
_SLACK: Final = 1.0
"""Seconds by which a duration may be longer than the time since the request was handed over, and still be one."""


def read_times(ticket: Ticket, stats: Iterable[object]) -> None:
    """Take over what the stats of a request's sequences tell: from the first to begin until the last to end."""
    seen: dict[str, float] = ticket.notes.setdefault("clock", {})
    for each in stats:
        for name in _NAMES:
            value: Any = getattr(each, name, 0.0)
            if isinstance(value, float) and value > 0:
                known = seen.get(name, value)
                seen[name] = max(known, value) if name == "last_token_ts" else min(known, value)
    queued, scheduled, first, last = (seen.get(name) for name in _NAMES)
    if ticket.submitted_at is None or queued is None or scheduled is None:
        return
    longest = time.monotonic() - ticket.submitted_at + _SLACK
    if 0 <= scheduled - queued <= longest:
        ticket.queue_seconds = scheduled - queued
    if first is None or not 0 <= first - queued <= longest:  # sequences on engines whose clocks differ
        return
    ticket.first_token_at = min(ticket.first_token_at or time.monotonic(), ticket.submitted_at + first - queued)
    if last is not None and 0 <= last - first <= longest:
        ticket.generation_seconds = last - first
