"""Stopping: refuse what is new, let what is open run for a while, then end it with its terminal and let go."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from lastword_shim.exchange.progress import Progress

if TYPE_CHECKING:
    from lastword_shim.exchange.exchange import Exchange

_log: Final = logging.getLogger("lastword_shim")
TERMINALS_WITHIN: Final = 1.0
"""Seconds in which the terminals of open requests must have been sent once the time to finish is over."""


class Drain:
    """The open exchanges of one process, and whether it is stopping."""

    def __init__(self) -> None:
        self.draining = False
        self.progress = Progress()
        self._open: set[Exchange] = set()
        self._endings: dict[Exchange, asyncio.Future[None]] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Exchange]:
        """Those that are open now, in no order; they may end meanwhile."""
        return iter(list(self._open))

    def add(self, exchange: Exchange) -> None:
        """An exchange has begun."""
        self._open.add(exchange)
        self._idle.clear()

    def discard(self, exchange: Exchange) -> None:
        """An exchange has ended."""
        self._open.discard(exchange)
        self.progress.end(exchange)
        ending = self._endings.pop(exchange, None)
        if ending is not None:
            ending.set_result(None)
        if not self._open:
            self._idle.set()

    def queued(self) -> int:
        """How many generations have been handed to the engine and have no token yet."""
        return sum(exchange.is_queued for exchange in self._open)

    async def until_ended(self, exchanges: Iterable[Exchange], timeout: float) -> None:
        """Wait until these have ended, for at most ``timeout`` seconds."""
        loop = asyncio.get_running_loop()
        endings = [self._endings.setdefault(one, loop.create_future()) for one in exchanges if one in self._open]
        if endings:
            await asyncio.wait(endings, timeout=timeout)

    async def run(self, timeout: float) -> None:
        """Drain for at most ``timeout`` seconds, then end what is open within `TERMINALS_WITHIN`."""
        if not self.draining:
            _log.warning("shutting down: %d open requests may finish within %g s", len(self._open), timeout)
        self.draining = True
        if await self._wait(timeout):
            return
        for exchange in self:
            exchange.shut_down()
        if await self._wait(TERMINALS_WITHIN):
            return
        for exchange in self:  # a client that does not read, or an application that does not stop
            exchange.give_up()
        await self._wait(TERMINALS_WITHIN)

    async def _wait(self, timeout: float) -> bool:
        if self._open and timeout > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), timeout)
        return not self._open
