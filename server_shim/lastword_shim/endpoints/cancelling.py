"""An end to what a caller of his own has open."""

from __future__ import annotations

import logging
import weakref
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lastword_shim.exchange.exchange import Exchange
    from lastword_shim.exchange.register import Register

PATIENCE: Final = 3.0
"""Seconds that an answer waits for what it has cancelled to end."""
_log: Final = logging.getLogger("lastword_shim")


class Cancelling:
    """Cancels among the open exchanges of ``register``."""

    def __init__(self, register: Register) -> None:
        self._register = register
        self._cancelled: weakref.WeakSet[Exchange] = weakref.WeakSet()

    async def cancel(self, credential: bytes, request_id: str) -> int:
        """End every open attempt of that id with these credentials, and wait until they have ended; how many it were.

        One that was cancelled before and has not ended yet counts too: to say it twice changes nothing.
        """
        found = [
            exchange
            for exchange in self._register
            if exchange.credential == credential  # first: somebody else's ids are not even compared
            and exchange.life.request_id == request_id
            and (exchange.is_open or exchange in self._cancelled)
        ]
        for exchange in found:
            if exchange.is_open:
                self._cancelled.add(exchange)
                exchange.cancel()
                attempt = exchange.life.attempt
                _log.info("request_id=%s attempt=%d cancelled through the cancel endpoint", request_id, attempt)
        await self._register.until_ended(found, PATIENCE)
        return len(found)
