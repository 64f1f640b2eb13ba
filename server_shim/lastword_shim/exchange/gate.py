"""The gate that every outgoing message passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lastword_shim.protocol.wire import Headers, Send

Opening = Callable[[], tuple[int, Headers]]
"""Status and headers of an answer, asked for only when its start leaves."""


class Gate:
    """The only way out.  One start, then body, then one end; whatever comes later is dropped.

    One write at a time keeps a terminal behind a write that is waiting for a slow reader, and never in the middle of it.
    ``busy`` tells that there is one.  That it is a flag, and an event only where somebody waits, is for the many writes
    that nobody waits for.
    """

    opening: Opening
    """What the start says; set before the first write."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._freed: asyncio.Event | None = None
        self.busy = False
        self.started = False
        self.ended = False
        self.status: int | None = None

    async def write(self, body: bytes) -> None:
        """Send part of a body, after the start if that has not been sent."""
        if self.busy:
            await self._until_free()
        if self.ended:
            return
        self.busy = True
        try:
            if not self.started:
                await self._start()
            if body:
                await self._send({"type": "http.response.body", "body": body, "more_body": True})
        finally:
            self.busy = False
            if self._freed is not None:
                self._freed.set()

    async def finish(self, body: bytes) -> bool:
        """Send the last of the body and end; False if it had ended already."""
        if self.busy:
            await self._until_free()
        if self.ended:
            return False
        self.busy = True
        try:
            if not self.started:
                await self._start()
            self.ended = True
            await self._send({"type": "http.response.body", "body": body, "more_body": False})
        finally:
            self.busy = False
            if self._freed is not None:
                self._freed.set()
        return True

    def close(self) -> None:
        """Let nothing more out, though nothing said the end (the client has left, or does not read)."""
        self.ended = True

    async def _until_free(self) -> None:
        self._freed = self._freed or asyncio.Event()
        while self.busy:
            self._freed.clear()
            await self._freed.wait()

    async def _start(self) -> None:
        self.started = True  # at once: from here on an error is an event, even while the start waits for the client
        status, headers = self.opening()
        self.status = status
        try:
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
        except asyncio.CancelledError:  # whoever was sending has given up; the next one starts
            self.started = False
            raise
