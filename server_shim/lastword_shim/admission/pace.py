"""How fast those who wait get their turn, measured, and what a client that is turned away is told of it.

Pure: every time is passed in, in seconds of one monotonic clock, and so is the randomness.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

FEWEST_TURNS: Final = 3
"""Turns that make a measurement: with fewer, one long or one short request would speak for all."""
_LOOKED_BACK: Final = 60.0
"""Seconds of crowding that a measurement looks back, or further, to twice as many turns as requests run at a time."""
_FORGOTTEN_AFTER: Final = 600.0
"""Quiet seconds since the last turn after which what was measured says nothing any more."""
_MOST_TURNS: Final = 4096

UNMEASURED_PAUSE: Final = 1.0
"""Seconds that a client is told where nothing has been measured."""
_SHORTEST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 80.0  # with the jitter 120 s, beyond which stock SDKs do not retry (HDR-6)


class Pace:
    """Turns per second of crowding.

    A *turn* is a place that was given up, or a request that was begun; *crowded* is while the next request would have
    to wait.  Turns in quiet times tell only how much was asked for, so neither they nor the quiet time count.
    """

    def __init__(self) -> None:
        self._turns: deque[float] = deque()  # each on the clock of crowded time
        self._start = 0.0  # on that clock, when the first of them began to be waited for
        self._crowded_time = 0.0  # that clock, at the last change
        self._since: float | None = None  # when it became crowded; None while it is not
        self._latest = 0.0  # the last turn, on the caller's clock

    def crowded(self, now: float, crowded: bool) -> None:
        """From ``now`` on it is, or is not."""
        if crowded == (self._since is not None):
            return
        if self._since is not None:
            self._crowded_time += max(now - self._since, 0.0)
        self._since = now if crowded else None

    def turn(self, now: float, *, abreast: int = 1) -> None:
        """Somebody's turn has come; ``abreast`` is how many run at a time, which often end close together."""
        if self._since is None:
            return
        if self._is_old(now):
            self._turns.clear()
            self._start = self._crowded_time
        self._latest = max(now, self._latest)
        elapsed = self._elapsed(now)
        self._turns.append(elapsed)
        fewest = max(2 * abreast, 16)
        while len(self._turns) > _MOST_TURNS or (len(self._turns) > fewest and self._turns[0] < elapsed - _LOOKED_BACK):
            self._start = self._turns.popleft()

    def seconds(self, turns: int, now: float, *, abreast: int = 1) -> float | None:
        """How long ``turns`` turns take; None if that has not been measured.

        An engine that has come to a standstill is measured too: the longer nobody gets a turn, the longer it takes.
        """
        if len(self._turns) < max(FEWEST_TURNS, abreast // 2) or self._is_old(now):
            return None
        return turns * max(self._elapsed(now) - self._start, 0.0) / len(self._turns)

    def _is_old(self, now: float) -> bool:
        """Whether it has been quiet for so long since the last turn that another time has begun."""
        if not self._turns:
            return False
        return now - self._latest - (self._elapsed(now) - self._turns[-1]) > _FORGOTTEN_AFTER

    def _elapsed(self, now: float) -> float:
        return self._crowded_time + (0.0 if self._since is None else max(now - self._since, 0.0))


def pause(seconds: float | None, rng: Callable[[], float]) -> float:
    """When to come again, in seconds, for one that would have had to wait for ``seconds`` (None: not known).

    Spread over a time as long as the wait itself and round it, so that those who were turned away together do not come
    back together.  ``rng`` gives numbers from 0 to 1.
    """
    known = UNMEASURED_PAUSE if seconds is None else min(max(seconds, _SHORTEST_PAUSE), _LONGEST_PAUSE)
    return known * (0.5 + rng())
