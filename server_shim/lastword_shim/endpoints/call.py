"""One call of one of the shim's own routes, and how it is answered."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Final

from lastword._classify import ErrorInfo, make_error
from lastword._codes import Code
from lastword_shim.exchange.credential import digest
from lastword_shim.exchange.inbound import request_id_of
from lastword_shim.protocol.endings import error_response
from lastword_shim.protocol.settling import Context, settle
from lastword_shim.protocol.wire import Headers, Scope, Send, by_name

if TYPE_CHECKING:
    from lastword_shim._core import Core

_NOT_KEPT: Final = (b"cache-control", b"no-store")


class NotServed(Exception):
    """The call is not served; ``error`` says why, ``headers`` go with it."""

    def __init__(self, error: ErrorInfo, headers: Headers | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.headers = headers or []


def not_served(code: Code, message: str, *, param: str | None = None, headers: Headers | None = None) -> NotServed:
    """A refusal of the shim's own."""
    return NotServed(make_error(code, message, origin="shim", param=param), headers)


class Call:
    """Who asks what; each of its answers may be given once, and only one of them."""

    def __init__(self, core: Core, scope: Scope, send: Send) -> None:
        self._core = core
        self._send = send
        self.scope = scope
        self.method: str = scope["method"]
        self.credential = digest(scope["headers"])
        self._request_id = request_id_of(by_name(scope["headers"]))

    async def answer(self, body: object) -> None:
        """Answer 200 with JSON."""
        headers = await self._core.cors_headers(self.scope)
        await self._finish(200, b"application/json", json.dumps(body).encode(), headers)

    async def say(self, status: int, text: bytes, content_type: bytes = b"text/plain; charset=utf-8") -> None:
        """Answer with text, which is no browser's business."""
        await self._finish(status, content_type, text, [])

    async def refuse(self, refusal: NotServed) -> None:
        """Answer in the contract's words."""
        draining = self._core.drain.draining
        error, status = settle(refusal.error, Context(self._request_id, 1, draining))
        inner = [*await self._core.cors_headers(self.scope), *refusal.headers, _NOT_KEPT]
        headers, body = error_response(error, inner)
        await self._write(status, headers, body)

    async def _finish(self, status: int, content_type: bytes, body: bytes, extra: Headers) -> None:
        head = [(b"content-type", content_type), (b"content-length", str(len(body)).encode()), _NOT_KEPT]
        await self._write(status, [*extra, *head, (b"x-request-id", self._request_id.encode())], body)

    async def _write(self, status: int, headers: Headers, body: bytes) -> None:
        with contextlib.suppress(OSError):  # the caller has left, and there is nothing to stop for that
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
            body = b"" if self.method == "HEAD" else body
            await self._send({"type": "http.response.body", "body": body, "more_body": False})
