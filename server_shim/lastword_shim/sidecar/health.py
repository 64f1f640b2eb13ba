"""Whether the upstream answers: looked at when somebody asks, in the background, and heard of by the way."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from lastword._classify import classify_response
from lastword._codes import Code
from lastword_shim.engine import Condition
from lastword_shim.sidecar.failures import Broken, NoRoom, Refused, Unreadable, UpstreamError
from lastword_shim.sidecar.http1 import Http1
from lastword_shim.sidecar.pool import Pool

PATIENCE: Final = 5.0
"""Seconds that the upstream gets to answer a look."""
_REMEMBERED: Final = 1.0
"""Seconds for which an answer counts as fresh."""
_AT_MOST: Final = 0.5
"""Seconds that whoever wants a fresh answer is kept waiting: probes have little patience."""
_NOT_YET: Final = frozenset({Code.MODEL_LOADING, Code.SERVER_SHUTTING_DOWN})
_DYING: Final = 1.0
"""Seconds in which a living upstream answers to something, and one that is being killed has ceased to listen."""
_MOST: Final = 65536


class Health:
    """What is known of one upstream: ``condition``, and ``said``, how the last look ended, for people."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._looked_at = float("-inf")
        self._looking: asyncio.Task[None] | None = None
        self.condition: Condition | None = None
        self.said = ""

    def heard(self, *, reachable: bool) -> None:
        """A request has been answered, whatever the answer; or nothing listens there."""
        if not reachable:
            self.condition = "dead"
        elif self.condition == "dead":
            self.condition = None

    async def look(self) -> None:
        """Ask now; who asks at the same time shares the answer."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._ask())
        await asyncio.shield(self._looking)

    async def refresh(self) -> None:
        """Ask, if that is a while ago, and wait a little for the answer; what comes later counts the next time."""
        if asyncio.get_running_loop().time() - self._looked_at > _REMEMBERED:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_AT_MOST):
                    await self.look()

    async def is_gone(self) -> bool:
        """Whether nothing listens there any more, right now.

        Only that it is refused tells: what closes a connection at once listens all the same, and what else keeps from
        connecting may be our own want of descriptors.

        Raises:
            UpstreamError: that cannot be seen.
        """
        try:
            # A process that dies closes its connections first and its listener a moment later; who answers lives.
            with contextlib.suppress(TimeoutError, Broken, Unreadable):
                async with asyncio.timeout(_DYING):
                    await self._get(self._pool.address.prefix + "/health")
                return False
            (await self._pool.open()).close()
        except Refused:
            self.heard(reachable=False)
            return True
        return False

    def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                status, body = await self._get(self._pool.address.prefix + "/health")
        except NoRoom as error:  # which says nothing of the upstream
            self.said = f"could not be asked: {error}"
        except UpstreamError as error:
            self.said = f"does not answer: {error}"
            self.condition = "dead"
        except TimeoutError:
            self.said = f"did not answer within {PATIENCE:g} s"
            self.condition = "dead"
        else:
            self.said = f"answers {status} to GET /health"
            fault = classify_response(status, {}, body) if status >= 500 else None
            self.condition = None if fault is None else "loading" if fault.code in _NOT_YET else "dead"
        self._looked_at = asyncio.get_running_loop().time()

    async def _get(self, target: str) -> tuple[int, bytes]:
        connection = await self._pool.open()
        try:
            http = Http1()
            fields = [(b"host", self._pool.address.authority.encode()), (b"connection", b"close")]
            connection.begin(http, http.request(b"GET", target.encode(), fields) + http.end())
            head = await connection.head()
            body = b""
            while len(body) < _MOST and (part := await connection.read()):
                body += part
            return head.status, body
        finally:
            connection.close()
