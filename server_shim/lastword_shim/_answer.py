"""From an error as the engine or the core states it to the error as the caller is told it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, Final

from lastword._classify import ErrorInfo, make_error
from lastword._codes import CODES, Category, Code, RetryRule
from lastword_shim._redact import loggable, scrub

_log: Final = logging.getLogger("lastword_shim")

# What the core says of a wire that it reads is, for the server that made it, an engine that gave up or went wrong.
_SEEN_FROM_THE_SERVER: Final = {
    Code.STREAM_INCOMPLETE: Code.GENERATION_ABORTED,
    Code.MALFORMED_RESPONSE: Code.INTERNAL_SERVER_ERROR,
    Code.CONNECTION_FAILED: Code.BAD_GATEWAY,
    Code.CONNECT_TIMEOUT: Code.GATEWAY_TIMEOUT,
    Code.CANCELLED: Code.GENERATION_ABORTED,  # nobody but the client could have cancelled, and it is still there
    Code.CLIENT_DISCONNECTED: Code.GENERATION_ABORTED,
}
# While the server drains, each of these is what stopping looks like from inside.
_STOPPING_LOOKS_LIKE: Final = frozenset({
    Code.GENERATION_ABORTED, Code.ENGINE_UNAVAILABLE, Code.INTERNAL_SERVER_ERROR,
})  # fmt: skip
_PAUSES: Final = {RetryRule.AFTER_HINT: 1.0, RetryRule.BACKOFF: 1.0, RetryRule.LIMITED: 1.0, RetryRule.ONCE: 5.0}
"""Retry hints in seconds where nothing better is known: one watchdog round of the engine, or a moment."""
_TYPES: Final = {
    401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Context:
    """What an answer depends on besides the error: the request's id and try, and the server's state and settings."""

    request_id: str
    attempt: int
    draining: bool = False
    overload_status: int = 503
    overload_pause: float = 1.0


def settle(info: ErrorInfo, context: Context) -> tuple[ErrorInfo, int]:
    """The error to send and its HTTP status; what is held back of the engine's words goes to the log."""
    code = _seen_here(info, context)
    known = CODES.get(Code(code)) if code in CODES else None
    status = _status(info, code, context)
    retryable = known.category is Category.RETRYABLE if known is not None else info.retryable
    pause = info.retry_after or (context.overload_pause if code == Code.QUEUE_OVERLOADED else None)
    if pause is None and known is not None:
        pause = _PAUSES.get(known.retry)
    # RetryRule.ONCE: the request may be what killed the engine, so a second retry is not invited.
    again = retryable and not (known is not None and known.retry is RetryRule.ONCE and context.attempt > 1)
    settled = replace(
        info,
        code=str(code),
        category=info.category if known is None else str(known.category),
        outcome=info.outcome if known is None else str(known.outcome),
        retryable=retryable,
        message=_message(info, code, status, context.request_id),
        type=_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error"),
        param=info.param,
        status=status,
        request_id=context.request_id,
        retry_after=pause if retryable else None,
        should_retry=again,
        details={name: _detail(value) for name, value in info.details.items()},
        origin="engine" if info.origin == "client" else info.origin,  # the core speaks as a client; what it read was the engine's
        raw=None,
    )
    return settled, status


def _seen_here(info: ErrorInfo, context: Context) -> str:
    code = _SEEN_FROM_THE_SERVER.get(Code(info.code), info.code) if info.code in CODES else info.code
    if context.draining and code in _STOPPING_LOOKS_LIKE:
        return Code.SERVER_SHUTTING_DOWN
    return code


def _status(info: ErrorInfo, code: str, context: Context) -> int:
    if code == Code.QUEUE_OVERLOADED:
        return context.overload_status
    if code in CODES:
        return CODES[Code(code)].http_status or 500
    return info.status if info.status is not None and info.status >= 400 else 500


def _message(info: ErrorInfo, code: str, status: int, request_id: str) -> str:
    """Our own words as they are; the engine's only where the caller can act on them, and scrubbed."""
    known = CODES.get(Code(code)) if code in CODES else None
    stock = known.brief if known is not None else "The server could not answer."
    if info.raw is None and code == info.code:
        return info.message
    kept = scrub(info.message) if status < 500 and info.raw is not None else None
    if kept != info.message:
        _log.warning(
            "request_id=%s code=%s status=%s the engine said: %s", request_id, code, status, loggable(info.message)
        )
    return kept or stock


def _detail(value: Any) -> Any:
    return (scrub(value) or "<redacted>") if isinstance(value, str) else value


def unexpected(error: BaseException, request_id: str) -> ErrorInfo:
    """An exception that nobody else could read; its traceback goes to the log."""
    _log.error("request_id=%s the application raised %s", request_id, type(error).__name__, exc_info=error)
    return make_error(Code.INTERNAL_SERVER_ERROR, CODES[Code.INTERNAL_SERVER_ERROR].brief, origin="engine")
