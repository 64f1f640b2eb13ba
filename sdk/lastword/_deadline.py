"""Which timer fires next.  Pure: every time is passed in, in seconds of one monotonic clock.

Four timers (TMR rules).  ``connect`` covers name lookup, TCP and TLS; ``first_token`` runs on a stream from the
attempt's start to its first content; ``idle`` from one piece of content to the next; ``total`` over the whole call, every
attempt and wait included.  Comments, role-only chunks and empty deltas are not content.  Time that the caller spends
between two chunks counts for ``total`` only: it is not the server's silence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final, Literal

from lastword._codes import Code

_LONGEST: Final = 1e9  # seconds; the waits of sockets and selectors overflow beyond
Timer = Literal["connect", "first_token", "idle", "total"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Limits in seconds; None switches a timer off.

    ``first_token`` and ``idle`` run on streams; a call without a stream has ``connect`` and ``total``.
    """

    connect: float | None = 5.0
    first_token: float | None = 120.0
    idle: float | None = 60.0
    total: float | None = 600.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LONGEST:
                raise ValueError(
                    f"Timeouts({each.name}={value!r}): give seconds, above 0 and up to 1e9, or None to switch it off"
                )


class Deadline:
    """The timers of one call."""

    __slots__ = ("_connecting", "_limit", "_progressed", "_since", "_stream", "_timeouts", "_total_at")

    def __init__(self, timeouts: Timeouts, *, stream: bool, now: float) -> None:
        self._timeouts = timeouts
        self._stream = stream
        self._total_at = math.inf if timeouts.total is None else now + timeouts.total
        self.attempt(now)

    def attempt(self, now: float) -> None:
        """A new attempt begins: everything but ``total`` starts afresh."""
        self._connecting: float | None = None
        self._progressed = False
        self._since = now
        self._limit = self._timeouts.first_token if self._stream else None

    def connecting(self, now: float) -> None:
        """A connection is being made; ``connected`` ends it."""
        if self._connecting is None:
            self._connecting = now

    def connected(self) -> None:
        """The connection stands."""
        self._connecting = None

    def progress(self, now: float) -> None:
        """Content arrived."""
        self._since = now
        if not self._progressed:
            self._progressed = True
            self._limit = self._timeouts.idle if self._stream else None

    def exclude(self, seconds: float) -> None:
        """The caller kept the stream waiting so long; the server is not to blame."""
        self._since += seconds

    def next(self) -> tuple[Timer, float]:
        """The timer that fires next and when; ``math.inf`` if none can."""
        timer: Timer = "total"
        at = self._total_at
        if self._limit is not None and self._since + self._limit < at:
            timer, at = ("idle" if self._progressed else "first_token"), self._since + self._limit
        if self._connecting is not None and self._timeouts.connect is not None:
            connect_at = self._connecting + self._timeouts.connect
            if connect_at < at:
                timer, at = "connect", connect_at
        return timer, at

    def left(self, now: float) -> float:
        """Seconds until ``total`` fires; ``math.inf`` if it is off."""
        return self._total_at - now


CODE_OF: dict[Timer, Code] = {
    "connect": Code.CONNECT_TIMEOUT,
    "first_token": Code.FIRST_TOKEN_TIMEOUT,
    "idle": Code.GENERATION_STALLED,
    "total": Code.DEADLINE_EXCEEDED,
}
"""The code of each of the client's own timers."""

WAITED_FOR: dict[Timer, str] = {
    "connect": "a connection",
    "first_token": "the first content of the stream",
    "idle": "more content of the stream",
    "total": "the request to end",
}
"""What each timer waits for, to finish the sentence "waited N seconds for"."""
