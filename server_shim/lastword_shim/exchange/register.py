"""The open exchanges of one process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lastword_shim.exchange.progress import Progress

if TYPE_CHECKING:
    from lastword_shim.exchange.exchange import Exchange


class Register:
    """Every exchange from its begin to its end."""

    def __init__(self) -> None:
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

    async def until_ended(self, exchanges: Iterable[Exchange], timeout: float) -> None:
        """Wait until these have ended, for at most ``timeout`` seconds."""
        loop = asyncio.get_running_loop()
        endings = [self._endings.setdefault(one, loop.create_future()) for one in exchanges if one in self._open]
        if endings:
            await asyncio.wait(endings, timeout=timeout)

    async def until_idle(self, timeout: float) -> bool:
        """Wait until none is open, for at most ``timeout`` seconds; whether none is."""
        if self._open and timeout > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), timeout)
        return not self._open
