"""The connections to the upstream: idle ones are used again while it is sure to keep them open."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from typing import Final

from lastword_shim.sidecar.address import Address
from lastword_shim.sidecar.connection import Connection
from lastword_shim.sidecar.failures import failure_of
from lastword_shim.sidecar.http1 import Head

_log: Final = logging.getLogger("lastword_shim")
MOST_IDLE: Final = 256
"""More idle connections are not kept."""
_MARGIN: Final = 0.5
"""Seconds by which a connection is given up before the upstream would close it."""
_REMEMBERED: Final = 60.0
"""Seconds for which it counts that the upstream closed an idle connection early: it may just have been restarted."""
_AT_ONCE: Final = 0.1
"""Seconds; one that is closed sooner after its answer may have been its worker's last."""
_OFTEN: Final = 3
"""Times that this must come within what is remembered until it counts as the upstream's way."""


class Pool:
    """As many connections to one upstream as there are requests.

    ``connect_timeout`` and ``keep_alive`` (how long an idle one may wait to be used again) are seconds.  No request ever
    goes out twice: a connection that has closed is found out before anything is written to it.
    """

    def __init__(
        self, address: Address, *, connect_timeout: float, keep_alive: float, tls: ssl.SSLContext | None = None
    ) -> None:
        self.address = address
        self.tls = (tls or ssl.create_default_context()) if address.secure else None
        self.connect_timeout = connect_timeout
        self._keep_alive = keep_alive
        self._learned = keep_alive
        self._learned_at = 0.0
        self._at_once: deque[float] = deque(maxlen=_OFTEN)
        self._idle: deque[Connection] = deque()

    def idle(self) -> Connection | None:
        """One that is open and waits for a request, the last used first."""
        while self._idle:
            connection = self._idle.pop()
            _stop_expiry(connection)
            if connection.is_usable():
                return connection
            self._learn(connection)
            connection.close()
        return None

    async def open(self) -> Connection:
        """A new one.  Raises ``UpstreamError``."""
        loop = asyncio.get_running_loop()
        address = self.address
        try:
            async with asyncio.timeout(self.connect_timeout):
                _, connection = await loop.create_connection(
                    lambda: Connection(self._ended_idle),
                    address.host,
                    address.port,
                    ssl=self.tls,
                )
        except (OSError, ValueError) as error:  # ValueError: a name or a certificate that cannot be read
            raise failure_of(error, connecting=True) from error
        return connection

    def release(self, connection: Connection, head: Head | None) -> None:
        """A request is over: keep its connection, or close it."""
        if not connection.finish():
            connection.close()
            return
        loop = asyncio.get_running_loop()
        seconds = min(self._patience(loop.time()), _promised(head))
        if seconds <= 0 or len(self._idle) >= MOST_IDLE:
            connection.close()
            return
        connection.idle_since = loop.time()
        connection.expiry = loop.call_later(seconds, self._expire, connection)
        self._idle.append(connection)

    def close(self) -> None:
        """Close those that are idle."""
        while (connection := self._idle.pop() if self._idle else None) is not None:
            _stop_expiry(connection)
            connection.close()

    def _patience(self, now: float) -> float:
        return self._learned if now - self._learned_at < _REMEMBERED else self._keep_alive

    def _expire(self, connection: Connection) -> None:
        self._idle.remove(connection)
        connection.expiry = None
        connection.close()

    def _ended_idle(self, connection: Connection) -> None:
        if connection.expiry is not None:
            _stop_expiry(connection)
            self._idle.remove(connection)
            self._learn(connection)

    def _learn(self, connection: Connection) -> None:
        """The upstream has closed one that waited: it waits less long than we thought."""
        now = asyncio.get_running_loop().time()
        waited = now - connection.idle_since
        if waited < _AT_ONCE:
            self._at_once.append(now)
            if len(self._at_once) < _OFTEN or now - self._at_once[0] > _REMEMBERED:
                return
        if self._patience(now) > (patience := max(waited - _MARGIN, 0.0)):
            _log.info(
                "%s closes idle connections after %.1f s; they are used again for %.1f s",
                self.address,
                waited,
                patience,
            )
            self._learned, self._learned_at = patience, now


def _stop_expiry(connection: Connection) -> None:
    if connection.expiry is not None:
        connection.expiry.cancel()
        connection.expiry = None


def _promised(head: Head | None) -> float:
    """For how long the upstream says that it keeps the connection: ``Keep-Alive: timeout=N, max=M``."""
    for name, value in head.fields if head is not None else ():
        if name == b"keep-alive":
            said = dict(part.strip().partition(b"=")[::2] for part in value.lower().split(b","))
            if said.get(b"max") == b"0":
                return 0.0
            if said.get(b"timeout", b"").isdigit():
                return float(said[b"timeout"]) - 2 * _MARGIN
    return float("inf")
