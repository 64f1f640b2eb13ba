"""From an error as the engine or the core states it to the error as the caller is told it."""

from __future__ import annotations

import json
import logging
import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from lastword._classify import ErrorInfo, make_error
from lastword._codes import CODES, Category, Code, RetryRule
from lastword_shim.protocol.endings import error_response
from lastword_shim.protocol.private import Secrets
from lastword_shim.protocol.redact import NOTHING, loggable, loggable_traceback, scrub
from lastword_shim.protocol.wire import Headers

_NAME: Final = re.compile(r"[\w.-]{1,64}")
_NUMBER: Final = re.compile(r"(?<![\w.-])-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?(?![\w.]*\w)")  # and not part of a name
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
_LONGEST_PAUSE: Final = 120.0
"""Seconds; a longer hint of an engine's would forbid stock SDKs to retry (HDR-6)."""
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
    secrets: Secrets = NOTHING
    """What the caller sent: its keys are said to nobody, whoever repeats them, and its text not to the log."""


def answer_alone(info: ErrorInfo, *, draining: bool = False) -> tuple[int, Headers, bytes]:
    """Status, fields and body for a request that has no exchange; it gets an id of its own."""
    error, status = settle(info, Context(secrets.token_hex(16), 1, draining=draining))
    fields, body = error_response(error, ())
    return status, fields, body


def settle(info: ErrorInfo, context: Context) -> tuple[ErrorInfo, int]:
    """The error to send and its HTTP status; what is held back of the engine's words goes to the log."""
    if context.secrets.keys:
        info = _unspoken(info, context.secrets)
    code = _seen_here(info, context)
    known = CODES[code]
    status = context.overload_status if code is Code.QUEUE_OVERLOADED else known.http_status or 500
    retryable = known.category is Category.RETRYABLE
    pause = _PAUSES.get(known.retry)
    if info.retry_after is not None and info.retry_after > 0:
        pause = min(info.retry_after, _LONGEST_PAUSE)
    details = _details({**info.details, **({} if info.code in CODES else {"upstream_code": info.code})})
    if info.raw is not None and status >= 500:  # the engine's words stay here, and its numbers may go
        details = {name: value for name, value in details.items() if name == "upstream_code" or type(value) is not str}
    message = _message(info, code, status, context)
    settled = replace(
        info,
        code=str(code),
        category=str(known.category),
        outcome=str(known.outcome),
        retryable=retryable,
        message=message,
        type=_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error"),
        param=_param(info.param),
        status=status,
        request_id=context.request_id,
        retry_after=pause if retryable else None,
        # RetryRule.ONCE: the request may be what killed the engine, so a second retry is not invited.
        should_retry=retryable and not (known.retry is RetryRule.ONCE and context.attempt > 1),
        details=_with_numbers(message, details),
        origin="engine" if info.origin == "client" else info.origin,  # the core speaks as a client of the engine
        raw=None,
    )
    return settled, status


def _seen_here(info: ErrorInfo, context: Context) -> Code:
    if info.code not in CODES:  # an engine's own; a server promises the registry's (ERR-2)
        fixable = info.status is not None and info.status < 500
        code = Code.INVALID_REQUEST_ERROR if fixable else Code.INTERNAL_SERVER_ERROR
    else:
        code = Code(info.code) if info.origin == "shim" else _SEEN_FROM_THE_SERVER.get(Code(info.code), Code(info.code))
    if context.draining and code in _STOPPING_LOOKS_LIKE:
        return Code.SERVER_SHUTTING_DOWN
    return code


def _message(info: ErrorInfo, code: Code, status: int, context: Context) -> str:
    """Our own words as they are; the engine's only where the caller can act on them, and scrubbed."""
    if info.raw is None and code == info.code:
        return info.message if info.origin == "shim" else scrub(info.message) or CODES[code].brief
    if info.raw is None:
        return CODES[code].brief
    kept = scrub(info.message) if status < 500 else None
    if kept is None or "<" in kept:
        said = loggable(info.message, context.secrets)
        level = logging.INFO if CODES[code].category is Category.FIXABLE else logging.WARNING  # callers fill no log
        _log.log(level, "request_id=%s code=%s status=%s the engine said: %s", context.request_id, code, status, said)
    return kept or CODES[code].brief


def _unspoken(info: ErrorInfo, secrets: Secrets) -> ErrorInfo:
    strike = secrets.without_keys
    details = {name: strike(value) if isinstance(value, str) else value for name, value in info.details.items()}
    param = None if info.param is None else strike(info.param)
    return replace(info, message=strike(info.message), param=param, details=details)


def _param(name: str | None) -> str | None:
    """The member's name, unless it tells of something else."""
    name = (name or "").removeprefix("body.")
    return name if name and scrub(name) == name and "<key>" not in name else None


def _details(given: Mapping[str, Any]) -> dict[str, Any]:
    """Named numbers and scrubbed strings; an engine's own nested values might hold anything."""
    kept = {}
    for name, value in list(given.items())[:20]:
        if _NAME.fullmatch(name) is None:
            continue
        plain = value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
        if plain or (isinstance(value, list) and all(isinstance(item, int) for item in value)):
            kept[name] = value
        elif isinstance(value, str):
            kept[name] = scrub(value) or "<redacted>"
    return kept


def _with_numbers(message: str, details: dict[str, Any]) -> dict[str, Any]:
    """The details, and in them as ``numbers`` what the message counts and they do not name (ERR-3)."""
    text = json.dumps(list(details.values()))
    told = {float(number) for number in _NUMBER.findall(text)}
    found = dict.fromkeys(json.loads(number) for number in _NUMBER.findall(message) if float(number) not in told)
    return {**details, "numbers": list(found)} if found else details


def escaped(error: BaseException, known: ErrorInfo | None, request_id: str, *, secrets: Secrets) -> ErrorInfo:
    """An exception that came out of the application, ``known`` being what the engine makes of it."""
    if known is None or known.code == Code.INTERNAL_SERVER_ERROR:
        plain = unexpected(error, request_id, secrets=secrets)
        return known or plain
    if known.raw is None:  # else its words are logged where it is settled
        level = logging.INFO if known.category == Category.FIXABLE else logging.WARNING
        _log.log(level, "request_id=%s code=%s %s", request_id, known.code, loggable(str(error), secrets))
    return known


def unexpected(error: BaseException, request_id: str, *, secrets: Secrets) -> ErrorInfo:
    """An exception that nobody else could read; its traceback goes to the log."""
    where = loggable_traceback(error, secrets)
    _log.error("request_id=%s the application raised %s\n%s", request_id, type(error).__name__, where)
    return make_error(Code.INTERNAL_SERVER_ERROR, CODES[Code.INTERNAL_SERVER_ERROR].brief, origin="engine")
