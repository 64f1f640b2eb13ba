"""Stopping: refuse what is new, let what is open run for a while, then end it with its terminal and let go."""

from __future__ import annotations

import logging
from typing import Final

from lastword_shim.exchange.register import Register

_log: Final = logging.getLogger("lastword_shim")
TERMINALS_WITHIN: Final = 1.0
"""Seconds in which the terminals of open requests must have been sent once the time to finish is over."""


class Drain:
    """Whether one process is stopping, and the end of what is in ``register``."""

    def __init__(self, register: Register) -> None:
        self.draining = False
        self._register = register

    async def run(self, timeout: float) -> None:
        """Drain for at most ``timeout`` seconds, then end what is open within `TERMINALS_WITHIN`."""
        if not self.draining:
            level = logging.WARNING if self._register else logging.INFO
            _log.log(level, "shutting down: %d open requests may finish within %g s", len(self._register), timeout)
        self.draining = True
        if await self._register.until_idle(timeout):
            return
        for exchange in self._register:
            exchange.shut_down()
        if await self._register.until_idle(TERMINALS_WITHIN):
            return
        for exchange in self._register:  # a client that does not read, or an application that does not stop
            exchange.give_up()
        await self._register.until_idle(TERMINALS_WITHIN)
