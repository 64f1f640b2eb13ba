"""How an ending is written: the error event of a stream, the error answer, and the headers of either.

Rules STR of SPEC.md: ``[DONE]`` means success and nothing else; an error event is terminal and nothing follows it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from lastword._classify import ErrorInfo, error_body
from lastword._codes import CODES
from lastword_shim.protocol.wire import MESSAGES, Headers

_OWN_HEADERS: Final = frozenset({
    b"x-request-id", b"x-should-retry", b"retry-after", b"retry-after-ms",
})  # fmt: skip
_BODY_HEADERS: Final = frozenset({
    b"content-length", b"content-type", b"content-encoding", b"transfer-encoding", b"content-range", b"content-md5",
    b"content-digest", b"repr-digest", b"digest", b"etag", b"last-modified",
})  # fmt: skip
_ANTHROPIC_ID: Final = b"request-id"


def error_event(info: ErrorInfo) -> bytes:
    """The terminal event of a failed stream where events have no names (ERR-1)."""
    return event(error_body(info))


def messages_error(info: ErrorInfo) -> dict[str, Any]:
    """The error as a client of Anthropic's reads it, with everything that ours has: body and event alike (MSG-3)."""
    error = {**error_body(info)["error"], "type": CODES[info.code].anthropic_type}
    return {"type": "error", "error": error, "request_id": info.request_id}


def responses_failed(info: ErrorInfo, response: Mapping[str, Any] | None, sequence_number: int) -> bytes:
    """The terminal event of a failed Responses stream (RSP-3).

    ``response`` is the last that the stream told; None before it has told any, for which there is the flat form.
    Either has the error as ``error`` too: stock SDKs raise on that, and would take the event for one like any other.
    """
    error = error_body(info)["error"]
    if response is None:
        flat = {**error, "type": "error", "sequence_number": sequence_number}
        return event({**flat, "error": error}, name="error")
    failed = {**response, "status": "failed", "error": error, "incomplete_details": None}
    data = {"type": "response.failed", "sequence_number": sequence_number, "response": failed, "error": error}
    return event(data, name="response.failed")


def error_response(info: ErrorInfo, inner: Iterable[tuple[bytes, bytes]], *, kind: str = "") -> tuple[Headers, bytes]:
    """Headers and body of a failed answer; ``inner`` are the engine's headers, kept but for those of its body."""
    body = json.dumps(messages_error(info) if kind == MESSAGES else error_body(info)).encode()
    headers = [(name, value) for name, value in inner if name.lower() not in _OWN_HEADERS | _BODY_HEADERS]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append((b"x-should-retry", b"true" if info.should_retry else b"false"))
    if info.retry_after is not None:
        headers.append((b"retry-after", str(max(1, math.ceil(info.retry_after))).encode()))
        headers.append((b"retry-after-ms", str(math.ceil(info.retry_after * 1000)).encode()))
    return with_request_id(headers, info.request_id or "", kind=kind), body


def with_request_id(headers: Iterable[tuple[bytes, bytes]], request_id: str, *, kind: str) -> Headers:
    """The headers with exactly one request id, or none if it is empty; Anthropic's clients look for it under its own name."""
    names = (_ANTHROPIC_ID, b"x-request-id") if kind == MESSAGES else (b"x-request-id",)
    kept = [(name, value) for name, value in headers if name.lower() not in names]
    return [*kept, *((name, request_id.encode()) for name in names if request_id)]


def event(data: Mapping[str, Any], *, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
