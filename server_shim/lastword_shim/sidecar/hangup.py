"""Whether a caller is still there while nothing is read of it.

A transport that does not read sees no end either.  The system knows of it, unless the caller has closed behind bytes that
it could not send any more: its end then waits behind them.  Something that was sent to it makes the difference, for a
system resets a connection on which something comes that nobody will read.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Final

_EVERY: Final = 0.25
"""Seconds between two looks."""
_PROBES: Final = frozenset({1, 4, 12, 40, 120, 240, 480, 960, 1920})
"""Looks after which something is sent."""
_SIGNS: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


class HangUp:
    """Looks for it from `start` to `stop`; ``gone`` is called once, ``probe`` to send something that changes nothing.

    One request after another: `begin` forgets how often it looked.
    """

    def __init__(self, descriptor: int, gone: Callable[[], None], probe: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._gone = gone
        self._probe = probe
        self._looks = 0
        self._timer: asyncio.TimerHandle | None = None
        self._poll = select.poll()
        self._poll.register(descriptor, _SIGNS)

    def begin(self) -> None:
        """Another request comes."""
        self._looks = 0

    def start(self) -> None:
        """Nothing is read from now on."""
        if self._timer is None:
            self._timer = self._loop.call_later(_EVERY, self._look)

    def stop(self) -> None:
        """It is read again, or closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._poll.poll(0):
            self._gone()
            return
        self._looks += 1
        if self._looks in _PROBES:
            self._probe()
        self._timer = self._loop.call_later(_EVERY, self._look)
