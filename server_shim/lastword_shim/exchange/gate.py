"""The gate that every outgoing message passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lastword_shim.protocol.wire import Headers, Send


class Gate:
    """The only way out.  One start, then body, then one end; whatever comes later is dropped.

    One write at a time keeps a terminal behind a write that is waiting for a slow reader, and never in the middle of it.
    ``busy`` tells that there is one.  That it is a flag, and a lock only where somebody waits, is for the many writes that
    nobody waits for.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._freed = asyncio.Event()
        self.busy = False
        self.started = False
        self.ended = False
        self.status: int | None = None

    async def write(self, body: bytes, *, status: int, headers: Callable[[], Headers]) -> None:
        """Send part of a body, after the start if that has not been sent: only then are the headers asked for."""
        if self.busy:
            await self._until_free()
        if self.ended:
            return
        self.busy = True
        try:
            if not self.started:
                await self._start(status, headers)
            if body:
                await self._send({"type": "http.response.body", "body": body, "more_body": True})
        finally:
            self.busy = False
            self._freed.set()

    async def finish(self, body: bytes, *, status: int, headers: Callable[[], Headers]) -> bool:
        """Send the last of the body and end; False if it had ended already."""
        if self.busy:
            await self._until_free()
        if self.ended:
            return False
        self.busy = True
        try:
            if not self.started:
                await self._start(status, headers)
            self.ended = True
            await self._send({"type": "http.response.body", "body": body, "more_body": False})
        finally:
            self.busy = False
            self._freed.set()
        return True

    def close(self) -> None:
        """Let nothing more out, though nothing said the end (the client has left, or does not read)."""
        self.ended = True

    async def _until_free(self) -> None:
        while self.busy:
            self._freed.clear()
            await self._freed.wait()

    async def _start(self, status: int, headers: Callable[[], Headers]) -> None:
        self.started = True  # at once: from here on an error is an event, even while the start waits for the client
        self.status = status
        try:
            await self._send({"type": "http.response.start", "status": status, "headers": headers()})
        except asyncio.CancelledError:  # whoever was sending has given up; the next one starts
            self.started = False
            raise
