"""How an ending is written: the error event of a stream, the error answer, and the headers of either.

Rules STR of SPEC.md: ``[DONE]`` means success and nothing else; an error event is terminal and nothing follows it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, Final

from lastword._classify import ErrorInfo, error_body
from lastword_shim.protocol.wire import MESSAGES, RESPONSES, Headers

_OWN_HEADERS: Final = frozenset({
    b"x-request-id", b"x-should-retry", b"retry-after", b"retry-after-ms",
})  # fmt: skip
_BODY_HEADERS: Final = frozenset({b"content-length", b"content-type", b"content-encoding", b"transfer-encoding"})


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
