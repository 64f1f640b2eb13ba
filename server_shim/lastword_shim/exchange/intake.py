"""What the application receives: its request's body, then that the exchange is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lastword._classify import ErrorInfo
from lastword_shim.admission.refusals import Refusal
from lastword_shim.exchange.inbound import ClientLeft, Inbound
from lastword_shim.exchange.tasks import SideTasks
from lastword_shim.protocol.wire import Message


class Intake:
    """One body on its way in: whole where it must be looked at, else in parts as they come.

    The last part waits for the place at the engine, so that an upload takes none while it lasts.  ``admit`` is asked
    with it (or with the whole body) and tells whether it may go on; ``refuse`` and ``left`` are told what came instead.
    """

    def __init__(
        self,
        inbound: Inbound,
        side: SideTasks,
        hang_up: asyncio.Event,
        *,
        admit: Callable[[bytes], Awaitable[bool]],
        refuse: Callable[[ErrorInfo], None],
        left: Callable[[], None],
    ) -> None:
        self._in = inbound
        self._side = side
        self._hang_up = hang_up
        self._admit = admit
        self._refuse = refuse
        self._left = left
        self._taking: asyncio.Task[Message | None] | None = None
        self._begun = False
        self._given = False

    async def receive(self) -> Message:
        """The first call reads the head's promises, for by then the application has let the caller in."""
        while not self._given:
            if self._taking is None:
                self._taking = self._side.start(self._take())
            taking = self._taking
            message = await asyncio.shield(taking)  # who gives up waiting for a part does not lose it
            if message is None:
                break
            if self._taking is taking:  # nobody else has had it meanwhile
                self._taking = None
                self._given = not message["more_body"]
                return message
        await self._hang_up.wait()
        return {"type": "http.disconnect"}

    async def _take(self) -> Message | None:
        """The next part; None where the request is not let in."""
        try:
            if not self._begun:
                self._begun = True
                self._in.check_the_head()
            body, more = await self._in.read() if self._in.is_read_whole else await self._in.part()
            if more or await self._admit(body):
                return {"type": "http.request", "body": body, "more_body": more}
        except Refusal as refusal:
            self._refuse(refusal.error)
        except ClientLeft:
            self._left()
        return None
