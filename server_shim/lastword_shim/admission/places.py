"""How many may be at work or wait."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """At most ``max_inflight`` exchanges at work, at most ``max_queued`` waiting, first come first served."""

    def __init__(self, max_inflight: int | None, max_queued: int | None) -> None:
        self._max_inflight = max_inflight
        self._max_queued = max_queued if max_queued is not None or max_inflight is None else 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._inside = 0
        self._mean_seconds = 1.0

    def full(self, *, in_engine_queue: int) -> bool:
        """Whether one more would have to be refused; ``in_engine_queue`` counts those without a token yet."""
        if self._max_queued is None:
            return False
        if self._max_inflight is None:
            return in_engine_queue >= self._max_queued
        return self._inside >= self._max_inflight and len(self._waiting) >= self._max_queued

    @property
    def pause(self) -> float:
        """Seconds until a place should be free: what waits, at the pace of the last answers (1 to 60 s)."""
        lanes = self._max_inflight or max(self._inside, 1)
        return min(max(1.0, (len(self._waiting) + 1) * self._mean_seconds / lanes), 60.0)

    def enter(self) -> asyncio.Future[None]:
        """Take a place, or stand in line for one: done once it is there.  At once, so that `full` counts it from now on."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._max_inflight is None or (self._inside < self._max_inflight and not self._waiting):
            self._inside += 1
            place.set_result(None)
        else:
            self._waiting.append(place)
        return place

    def leave(self, place: asyncio.Future[None], seconds: float) -> None:
        """Give a place up, to the first in line if there is one, or the wait for it; ``seconds`` is how long it was used."""
        if not place.done():
            self._waiting.remove(place)
            return
        self._mean_seconds += 0.2 * (seconds - self._mean_seconds)
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self._inside -= 1
