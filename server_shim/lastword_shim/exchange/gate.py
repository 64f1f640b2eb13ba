"""The gate that every outgoing message passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lastword_shim.protocol.wire import Headers, Send


class Gate:
    """The only way out.  One start, then body, then one end; whatever comes later is dropped.

    The lock keeps a terminal behind a write that is waiting for a slow reader, and never in the middle of it.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = asyncio.Lock()
        self.started = False
        self.ended = False
        self.status: int | None = None

    @property
    def busy(self) -> bool:
        """Whether a write is waiting for the client to read."""
        return self._lock.locked()

    async def write(self, body: bytes, *, status: int, headers: Callable[[], Headers]) -> None:
        """Send part of a body, after the start if that has not been sent: only then are the headers asked for."""
        async with self._lock:
            if not self.ended:
                await self._start(status, headers)
                if body:
                    await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def finish(self, body: bytes, *, status: int, headers: Callable[[], Headers]) -> bool:
        """Send the last of the body and end; False if it had ended already."""
        async with self._lock:
            if self.ended:
                return False
            await self._start(status, headers)
            self.ended = True
            await self._send({"type": "http.response.body", "body": body, "more_body": False})
            return True

    def close(self) -> None:
        """Let nothing more out, though nothing said the end (the client has left, or does not read)."""
        self.ended = True

    async def _start(self, status: int, headers: Callable[[], Headers]) -> None:
        if not self.started:
            self.started = True  # at once: from here on an error is an event, even while the start waits for the client
            self.status = status
            try:
                await self._send({"type": "http.response.start", "status": status, "headers": headers()})
            except asyncio.CancelledError:  # whoever was sending has given up; the next one starts
                self.started = False
                raise
