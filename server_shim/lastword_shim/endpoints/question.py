"""A GET that the shim itself puts to the application, with a caller's headers."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import Any, Final

from lastword_shim.protocol.redact import loggable_traceback
from lastword_shim.protocol.wire import App, Headers, Message, Scope

_log: Final = logging.getLogger("lastword_shim")
_NOT_ASKED: Final = frozenset({  # of a body that is not sent on, or for another answer than a plain one
    b"content-length", b"content-type", b"content-encoding", b"transfer-encoding", b"expect", b"upgrade", b"te",
    b"range", b"if-none-match", b"if-modified-since", b"if-match", b"if-unmodified-since", b"if-range",
    b"accept-encoding", b"accept", b"x-request-id", b"x-request-attempt", b"request-timeout-ms",
})  # fmt: skip


class Question:
    """``status`` and ``headers`` of the answer; status None while, or if, there is none."""

    def __init__(self, scope: Scope, path: str) -> None:
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _NOT_ASKED]
        headers.append((b"x-request-id", f"lastword-{secrets.token_hex(8)}".encode()))
        self._scope = {
            **scope,
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
            "extensions": {},
        }
        self._body_given = False
        self._gone = asyncio.Event()
        self.status: int | None = None
        self.headers: Headers = []

    async def put(self, app: App, patience: float) -> None:
        """Wait for the answer, for at most ``patience`` seconds; whatever the application does, nothing is raised."""
        asking: asyncio.Task[Any] = asyncio.create_task(self._call(app))
        asking.add_done_callback(_look)
        try:
            await asyncio.wait({asking}, timeout=patience)
        finally:
            self._gone.set()
            asking.cancel()

    async def _call(self, app: App) -> None:
        await app(self._scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if not self._body_given:
            self._body_given = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]


def _look(asking: asyncio.Task[Any]) -> None:
    problem = None if asking.cancelled() else asking.exception()
    if problem is not None:
        what, where = type(problem).__name__, loggable_traceback(problem)
        _log.error("the application raised %s when it was asked about a key\n%s", what, where)
