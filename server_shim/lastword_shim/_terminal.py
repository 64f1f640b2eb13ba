"""One honest terminal, exactly once: the gate that every outgoing message passes, and how an ending is written.

Rules STR of SPEC.md: ``[DONE]`` means success and nothing else; an error event is terminal and nothing follows it.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

from lastword._classify import ErrorInfo, error_body

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

CHAT, COMPLETIONS, RESPONSES, MESSAGES, OTHER = "chat", "completions", "responses", "messages", "other"

_OWN_HEADERS: Final = frozenset({
    b"x-request-id", b"x-should-retry", b"retry-after", b"retry-after-ms",
})  # fmt: skip
_BODY_HEADERS: Final = frozenset({b"content-length", b"content-type", b"content-encoding", b"transfer-encoding"})


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

    async def write(self, body: bytes, *, status: int, headers: Headers) -> None:
        """Send part of a body, after the start if that has not been sent."""
        async with self._lock:
            if not self.ended:
                await self._start(status, headers)
                if body:
                    await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def finish(self, body: bytes, *, status: int, headers: Headers) -> bool:
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

    async def _start(self, status: int, headers: Headers) -> None:
        if not self.started:
            self.started = True  # at once: from here on an error is an event, even while the start waits for the client
            self.status = status
            try:
                await self._send({"type": "http.response.start", "status": status, "headers": headers})
            except asyncio.CancelledError:  # whoever was sending has given up; the next one starts
                self.started = False
                raise


def error_event(kind: str, info: ErrorInfo) -> bytes:
    """The terminal event of a failed stream, in the words of the endpoint's protocol."""
    body = error_body(info)
    if kind == MESSAGES:
        return _event({"type": "error", **body, "request_id": info.request_id}, name="error")
    if kind == RESPONSES:
        return _event({**body["error"], "type": "error"}, name="error")  # flat there
    return _event(body)


def error_response(info: ErrorInfo, inner: Iterable[tuple[bytes, bytes]]) -> tuple[Headers, bytes]:
    """Headers and body of a failed answer; ``inner`` are the engine's headers, kept but for those of its body."""
    body = json.dumps(error_body(info)).encode()
    headers = [(name, value) for name, value in inner if name.lower() not in _OWN_HEADERS | _BODY_HEADERS]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append((b"x-should-retry", b"true" if info.should_retry else b"false"))
    if info.retry_after is not None:
        headers.append((b"retry-after", str(max(1, math.ceil(info.retry_after))).encode()))
        headers.append((b"retry-after-ms", str(math.ceil(info.retry_after * 1000)).encode()))
    headers.append((b"x-request-id", (info.request_id or "").encode()))
    return headers, body


def success_headers(inner: Iterable[tuple[bytes, bytes]], *, request_id: str, extra: Headers) -> Headers:
    """The engine's headers with exactly one request id."""
    kept = [(name, value) for name, value in inner if name.lower() != b"x-request-id"]
    return [*kept, *extra, (b"x-request-id", request_id.encode())]


def _event(data: dict[str, Any], *, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
