"""How long a caller's connection waits for what comes next, and for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

HEAD, BODY, IDLE, NOTHING = "head", "body", "idle", ""
"""What is waited for: a head, the next bytes of a body, another request."""
TIMES: Final = {HEAD: 60.0, BODY: 60.0, IDLE: 75.0}
"""Seconds for a head, from its first byte or from the connection's begin; between two bytes of a body; and that an idle
connection is kept: longer than clients and balancers keep theirs, so that they close first."""
LOOK: Final = 5.0
"""Seconds that a client gets to close after our end; what waits to leave is looked after as often."""
_STUCK: Final = 12
"""Looks without a byte taken after which nobody is expected to take any."""


class Clock:
    """One wait at a time; ``late`` is called with what did not come."""

    def __init__(self, late: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._late = late
        self._timer: asyncio.TimerHandle | None = None
        self._waits_for = NOTHING
        self._heard_at = 0.0

    def heard(self) -> None:
        """Bytes have come, or could not come."""
        self._heard_at = self._loop.time()

    def wait_for(self, what: str) -> None:
        """From now on; to say so again changes nothing."""
        if what != self._waits_for:
            self._set(what, TIMES.get(what, 0.0))

    def _set(self, what: str, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._waits_for = what
        self._timer = self._loop.call_later(seconds, self._ring) if what else None

    def _ring(self) -> None:
        what, self._timer, self._waits_for = self._waits_for, None, NOTHING
        left = self._heard_at + TIMES[what] - self._loop.time() if what == BODY else 0.0
        if left > 0:
            self._set(what, left)
        else:
            self._late(what)


class Closing:
    """Closes a transport once all that was written has left, or nobody takes it any more."""

    def __init__(self, transport: asyncio.Transport, *, linger: bool) -> None:
        """With ``linger`` a client that still sends gets the time to read why nobody listens."""
        self._transport = transport
        self._waits = 0
        self._before = transport.get_write_buffer_size()
        if linger and not transport.is_closing():
            transport.write_eof()
        else:
            transport.close()
        self._timer = asyncio.get_running_loop().call_later(LOOK, self._look)

    def stop(self) -> None:
        """It is closed."""
        self._timer.cancel()

    def _look(self) -> None:
        size = self._transport.get_write_buffer_size()
        self._waits = 0 if size < self._before else self._waits + 1
        self._before = size
        if size and self._waits < _STUCK:
            self._timer = asyncio.get_running_loop().call_later(LOOK, self._look)
        else:
            self._transport.abort()
