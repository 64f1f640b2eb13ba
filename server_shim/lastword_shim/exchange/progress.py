"""Whether the engine makes tokens for those that wait for some."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lastword_shim.exchange.exchange import Exchange

LOOK_AGAIN: Final = 0.1
"""Seconds for which a look at all open exchanges holds: anybody may ask, as often as he likes."""


class Progress:
    """The exchanges at the engine whose tokens can be seen, and the last token of any.

    It counts from when somebody began to wait, and not from when those began who wait now: clients that give up
    sooner than the limit, one after the other, would hide for ever that nobody is served.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: set[Exchange] = set()
        self._since = 0.0  # from then on there was always one that waited
        self._last_token_at = 0.0  # of those that have ended
        self._looked_at = float("-inf")
        self._found = False

    def begin(self, exchange: Exchange) -> None:
        """The engine has it from now on."""
        if exchange.shows_tokens:
            if not any(other.is_open and not other.is_blocked for other in self._waiting):
                self._since = self._clock()
            self._waiting.add(exchange)

    def end(self, exchange: Exchange) -> None:
        """It has ended."""
        if exchange in self._waiting:
            self._waiting.discard(exchange)
            self._last_token_at = max(self._last_token_at, exchange.life.last_token_at or 0.0)

    def stalled(self, limit: float) -> bool:
        """Whether somebody has waited for ``limit`` seconds, and in these no token has come for anybody."""
        now = self._clock()
        if not self._waiting or now - max(self._since, self._last_token_at) < limit:
            return False
        if now - self._looked_at >= LOOK_AGAIN:
            self._looked_at, self._found = now, self._look(now - limit)
        return self._found

    def _look(self, since: float) -> bool:
        waits = False
        for exchange in self._waiting:
            seen = exchange.is_open and exchange.shows_tokens  # which brings its counts up to date
            if exchange.progress_at > since:
                return False
            waits = waits or (seen and not exchange.is_blocked)
        return waits
