"""One request on its way to the upstream, and its answer on the way back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final

from lastword_shim.engine import current
from lastword_shim.protocol.wire import Headers, Message, Receive, Scope, Send
from lastword_shim.sidecar.connection import Connection
from lastword_shim.sidecar.failures import Broken, Unsendable, UpstreamError
from lastword_shim.sidecar.fields import inward, outward
from lastword_shim.sidecar.http1 import Head, Http1
from lastword_shim.sidecar.pool import Pool
from lastword_shim.sidecar.served import OVER

_SMALL: Final = 65536
"""Bytes of a body that are sent in one piece with the head."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class Passage:
    """``answering``: whether part of the answer has been handed over.

    The client is followed in a task of its own, for as long as all of it takes: what it uploads is sent on as it comes,
    and once it has left, the connection to the upstream is closed.
    """

    def __init__(self, pool: Pool, scope: Scope, receive: Receive, send: Send) -> None:
        self._pool = pool
        self._scope = scope
        self._receive = receive
        self._send = send
        self._http = Http1()
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._received = time.monotonic()
        self._begun = asyncio.Event()
        self._began = 0.0
        self._left = False
        self.ticket = current()
        self.answering = False

    async def run(self) -> None:
        """Serve it.

        Raises:
            UpstreamError: there is no answer, or it broke off.
        """
        first = await self._receive()
        if first["type"] == "http.disconnect":
            return
        body, more = bytes(first.get("body", b"")), bool(first.get("more_body", False))
        follower = asyncio.create_task(self._follow(more=more))
        head: Head | None = None
        try:
            connection = self._pool.idle() or await self._open()
            if connection is not None:
                self._begin(connection, body, more=more)
                head = await connection.head()
                self._handed_over(head)
                await self._hand_back(connection, head)
        except UpstreamError as error:
            if not self._left:  # else that was us
                self._handed_over(head, error)
                raise
        finally:
            follower.cancel()
            if self._connection is not None:
                self._pool.release(self._connection, head)

    async def _open(self) -> Connection | None:
        """A new connection; None where the client has left before there was one."""
        opening = self._opening = asyncio.create_task(self._pool.open())
        try:
            await asyncio.wait((opening,))
        except asyncio.CancelledError:
            opening.cancel()
            opening.add_done_callback(_discard)
            raise
        if self._left:
            opening.add_done_callback(_discard)
            return None
        return opening.result()

    def _begin(self, connection: Connection, body: bytes, *, more: bool) -> None:
        self._connection = connection
        spent = time.monotonic() - self._received  # reading the body, waiting for a place, connecting
        fields = inward(self._scope, self._pool.address, self._framing(len(body), more=more), spent=spent)
        method = self._scope["method"].encode("latin-1")
        head = self._http.request(method, self._pool.address.target(self._scope), fields)
        rest = self._http.body(body) + (b"" if more else self._http.end())
        if len(rest) <= _SMALL:
            connection.begin(self._http, head + rest)
        else:
            connection.begin(self._http, head)
            connection.send(rest)
        self._began = time.monotonic()
        self._begun.set()

    def _handed_over(self, head: Head | None, error: UpstreamError | None = None) -> None:
        """Note that the engine has taken the request: it has begun to answer, or it broke over it."""
        taken = head.status < 400 if head is not None else isinstance(error, Broken)
        if taken and self.ticket is not None and self.ticket.submitted_at is None:
            self.ticket.submitted(at=self._began)

    def _framing(self, length: int, *, more: bool) -> Headers:
        """How the body is framed: by its length where that is known."""
        given = {
            name: value for name, value in self._scope["headers"] if name in {b"content-length", b"transfer-encoding"}
        }
        if more:
            announced = given.get(b"content-length")
            if announced is None or b"transfer-encoding" in given:
                return [(b"transfer-encoding", b"chunked")]
            return [(b"content-length", announced)]
        announced = given.get(b"content-length")
        if announced is not None and b"transfer-encoding" not in given and announced.strip() != str(length).encode():
            raise Unsendable(f"{length} bytes of a body came where another number was announced")
        if length or given or self._scope["method"] in _WITH_BODY:
            return [(b"content-length", str(length).encode())]
        return []

    async def _hand_back(self, connection: Connection, head: Head) -> None:
        self.answering = True
        fields = outward(head.status, head.fields)
        try:
            await self._send({"type": "http.response.start", "status": head.status, "headers": fields})
            more = True
            while more:
                part = await connection.read()
                more = not connection.at_end
                await self._send({"type": "http.response.body", "body": part, "more_body": more})
        except OSError:  # ASGI 2.4's way to say that the client has left
            self._left = True

    async def _follow(self, *, more: bool) -> None:
        """Send on what the client uploads, and notice when it leaves."""
        try:
            while (message := await self._receive())["type"] != "http.disconnect":
                if more:
                    more = await self._upload(message)
        except UpstreamError as error:  # more or less than was announced
            if self._connection is not None:
                self._connection.fail(error)
            return
        except Exception:  # noqa: BLE001 (the server's own receive has failed: nobody is there any more)
            self._leave()
            return
        self._leave()

    async def _upload(self, message: Message) -> bool:
        """Send on part of the request's body; whether there is more."""
        await self._unless_over(self._begun.wait())
        if self._connection is None or not self._begun.is_set():
            return True
        more = bool(message.get("more_body", False))
        data = self._http.body(message.get("body", b"")) + (b"" if more else self._http.end())
        self._connection.send(data)
        await self._unless_over(self._connection.drain())
        return more

    async def _unless_over(self, waiting: Coroutine[Any, Any, object]) -> None:
        """Wait for it, but no longer than there is somebody to go on: it is in `receive` that one hears of that."""
        over: asyncio.Event | None = self._scope.get(OVER)
        if over is None:
            await waiting
            return
        tasks = (asyncio.create_task(waiting), asyncio.create_task(over.wait()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def _leave(self) -> None:
        self._left = True
        if self._connection is not None:
            self._connection.close()
        elif self._opening is not None:
            self._opening.cancel()


def _discard(opening: asyncio.Task[Connection]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
