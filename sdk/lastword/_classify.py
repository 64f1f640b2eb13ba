"""What an error means: any server's error body, in-stream frame or status becomes one contract code.

Pure and table-driven.  The tables are ``contract/dialects.json`` and ``contract/registry.json``, generated into
``_codes.py``; the order in which they are asked is in ``_code_of`` and nowhere else (the CLS rules of SPEC.md).
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

from lastword._codes import (
    CODE_ALIASES,
    CODES,
    CONTRACT,
    DROPPED_REASONS,
    GENERIC_TYPES,
    MESSAGE_DETAILS,
    MESSAGE_PATTERNS,
    PARAM_CODES,
    STATUS_CODES,
    TYPE_ALIASES,
    Category,
    Code,
    RetryRule,
)
from lastword._envelopes import Fields, any_fields, describe_text, error_fields, shown

MAX_RAW: Final = 4096
"""How much of a server's own words ``ErrorInfo.raw`` keeps, in characters."""

_CATEGORIES: Final = frozenset(Category)
_LONGEST_HINT: Final = 1e9  # seconds; a hint may be any number, and 1e308 s in milliseconds is none
_ORIGINS: Final = frozenset({"client", "gateway", "shim", "engine"})
_PATTERNS: Final = tuple(
    (re.compile(text, re.DOTALL), code, MESSAGE_DETAILS.get(text, ())) for text, code in MESSAGE_PATTERNS
)
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9\-_.:]{1,128}")
_NUMBER: Final = re.compile(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_REQUEST_ID_HEADERS: Final = ("x-request-id", "request-id", "apim-request-id", "x-litellm-call-id")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """One failure, classified.

    ``code`` is the contract's, or the raw code of a newer contract; ``status`` is the HTTP status received if it was an
    error's, else the one the body names; ``retry_after`` is in seconds; ``should_retry`` is the server's own word
    (``x-should-retry``, the body's ``retryable``), None where it said nothing; ``raw`` is what the server wrote, cut to
    ``MAX_RAW`` characters.
    """

    code: str
    category: str
    outcome: str
    retryable: bool
    message: str
    type: str | None = None
    param: str | None = None
    status: int | None = None
    request_id: str | None = None
    retry_after: float | None = None
    should_retry: bool | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    origin: str = "engine"
    raw: str | None = None


def make_error(code: Code, message: str, *, origin: str = "client", **fields: Any) -> ErrorInfo:
    """An ``ErrorInfo`` of a known code; category, outcome and (unless given) ``retryable`` are the registry's.

    A timer of the client's own (``origin``) is not worth the retry that the same code of a server is (RTY-9).
    """
    known = CODES[code]
    rule = known.retry_own_timer if origin == "client" else known.retry
    return ErrorInfo(
        code=str(code),
        category=str(known.category),
        outcome=str(known.outcome),
        retryable=fields.pop("retryable", known.category is Category.RETRYABLE and rule is not RetryRule.NEVER),
        message=message,
        origin=origin,
        **fields,
    )


def error_body(info: ErrorInfo) -> dict[str, Any]:
    """The contract's error body (the ERR rules), for an HTTP body and a stream's error event alike."""
    members = {
        "message": info.message,
        "type": info.type or info.code,
        "param": info.param,
        "code": info.code,
        "category": info.category,
        "retryable": info.retryable,
        "retry_after_ms": None if info.retry_after is None else math.ceil(min(info.retry_after, _LONGEST_HINT) * 1000),
        "request_id": info.request_id,
        "origin": info.origin,
        "details": dict(info.details),
        "contract": CONTRACT,
    }
    return {"error": members}


def classify_response(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float | None = None
) -> ErrorInfo | None:
    """Classify an HTTP answer; None where it is a 2xx whose body does not have an error's shape.

    ``headers`` has lower-case names; ``body`` may be JSON of any dialect, text, HTML, cut short or empty; ``now`` is
    Unix time, to read a ``Retry-After`` that is a date.
    """
    text = body.decode("utf-8-sig", "replace")  # some servers send a BOM
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if 200 <= status < 300:
        fields = error_fields(parsed)
        if fields is None:
            return None
    else:
        fields = any_fields(parsed) or {
            "message": describe_text(status, text),
            "origin": "gateway" if text.strip() else "engine",  # an engine's errors are JSON
        }
        fields["http_status"] = status
    return _with_headers(_build(fields, raw=text), headers, now=time.time() if now is None else now)


def classify_frame(event: str, data: object) -> ErrorInfo | None:
    """Classify one event of a stream, as parsed JSON or as text; None where it is no error.

    An event named ``error`` is an error whatever it holds; an ``error`` member counts whatever the event's name.
    """
    fields = error_fields(data)
    if fields is None:
        if event != "error":
            return None
        fields = any_fields(data) or {"message": "the server sent an error event that says nothing"}
    return _build(fields, raw=shown(data))


def retry_after_seconds(headers: Mapping[str, str], *, now: float) -> float | None:
    """The server's hint in seconds: ``retry-after-ms``, else ``retry-after`` as a number or an HTTP date (RFC 9110
    §10.2.3); None where there is none that can be read.  ``now`` is Unix time."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    if seconds is None and text:
        try:
            date = parsedate_to_datetime(text)
            utc = date if date.tzinfo else date.replace(tzinfo=UTC)  # asctime's form names no zone
            return max(0.0, utc.timestamp() - now)
        except (ValueError, OverflowError):
            return None
    return seconds


def is_request_id(text: str) -> bool:
    """Whether ``text`` may be a request id: 1 to 128 letters, digits and ``-_.:`` (HDR-1)."""
    return _REQUEST_ID.fullmatch(text) is not None


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The request id of an answer, from the first of the field's headers that has one."""
    return next((headers[name] for name in _REQUEST_ID_HEADERS if headers.get(name)), None)


def _with_headers(info: ErrorInfo, headers: Mapping[str, str], *, now: float) -> ErrorInfo:
    hint = retry_after_seconds(headers, now=now)
    word = {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower(), info.should_retry)
    dropped = DROPPED_REASONS.get(headers.get("x-llm-d-request-dropped-reason", "").strip())
    if dropped is not None:
        info = make_error(dropped, info.message, origin="gateway", status=info.status, raw=info.raw)
    return replace(
        info,
        request_id=request_id_of(headers) or info.request_id,
        retry_after=info.retry_after if hint is None else hint,
        should_retry=word,
        retryable=info.retryable and word is not False,
    )


def _build(fields: Fields, *, raw: str) -> ErrorInfo:
    stated = fields.get("status") or _status_in(_text(fields.get("code")))  # in the body, which goes first (CLS-2)
    status: int | None = fields.get("http_status") or stated
    code, details, unsure = _code_of(fields, stated or status)
    should_retry = fields["retryable"] if isinstance(fields.get("retryable"), bool) else None
    milliseconds = _number(fields.get("retry_after_ms"))
    origin = _text(fields.get("origin")) or "engine"
    info = ErrorInfo(
        code=code,
        category=str(Category.FIXABLE),
        outcome="failed",
        retryable=False,
        message=_readable(fields["message"]) or f"the server reported {code} without a message",
        type=_text(fields.get("type")),
        param=_text(fields.get("param")),
        status=status,
        request_id=_text(fields.get("request_id")),
        retry_after=None if milliseconds is None else milliseconds / 1000,
        should_retry=should_retry,
        details={**details, **fields.get("details", {})},
        origin=origin if origin in _ORIGINS else "engine",
        raw=raw[:MAX_RAW],
    )
    known = CODES.get(code)
    category = _unknown_category(fields, stated or status) if known is None else known.category
    outcome = known.outcome if known else "cancelled" if category is Category.CANCELLED else "failed"
    return replace(
        info,
        category=str(category),
        outcome=str(outcome),
        retryable=category is Category.RETRYABLE and should_retry is not False and not unsure,
    )


def _code_of(fields: Fields, status: int | None) -> tuple[str, dict[str, Any], bool]:
    """The order of CLS-2: the body's own code; what its words say; its type; its status; then a generic type.

    Returns the code, the details, and whether a code that nobody here knows was all there was to go by (ERR-6).
    """
    raw = _text(fields.get("code")) or None
    type_, param = _text(fields.get("type")) or "", _text(fields.get("param")) or ""
    details: dict[str, Any] = {}
    if raw is not None and raw in CODES:
        return raw, details, False
    if raw is not None and raw in CODE_ALIASES:
        return str(CODE_ALIASES[raw]), details, False
    if raw is not None and _status_in(raw) is None:
        if "contract" in fields or _text(fields.get("category")) in _CATEGORIES:
            return raw, details, False
        details["upstream_code"] = raw
    code = TYPE_ALIASES.get(type_) or PARAM_CODES.get(param)
    for pattern, patterned, names in _PATTERNS:
        found = pattern.search(fields["message"][:MAX_RAW]) if code in (None, patterned) else None
        if found is not None:
            return str(patterned), details | dict(zip(names, map(int, found.groups()), strict=True)), False
    if code is None and status == 404 and param == "model":
        code = Code.MODEL_NOT_FOUND
    if code is None and status is not None:
        code = STATUS_CODES.get(status) or (Code.INTERNAL_SERVER_ERROR if status >= 500 else Code.INVALID_REQUEST_ERROR)
    if code is not None:
        return str(code), details, False
    return str(GENERIC_TYPES.get(type_, Code.INTERNAL_SERVER_ERROR)), details, bool(details)


def _unknown_category(fields: Fields, status: int | None) -> Category:
    """ERR-6: an unknown code takes the body's category, else that of its status, and is never guessed retryable."""
    category = _text(fields.get("category"))
    if category in _CATEGORIES:
        return Category(category)
    by_status = STATUS_CODES.get(status) if status is not None else None
    return Category.FIXABLE if by_status is None else CODES[by_status].category


def _status_in(text: str | None) -> int | None:
    """The HTTP error status that a body gives as its code, as vLLM (400) and LiteLLM ("400") do."""
    number = int(text) if text and len(text) == 3 and text.isascii() and text.isdigit() else 0
    return number if 400 <= number < 600 else None


def _number(value: object) -> float | None:
    """A finite number that is not negative, from JSON or a header."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) is None:  # float() takes 1_000
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _readable(message: str) -> str:
    """A message that can be printed and is no longer than a page; ``raw`` has the rest."""
    return message[:MAX_RAW].encode("utf-8", "replace").decode()


def _text(value: object) -> str | None:
    return None if value is None or isinstance(value, bool | Mapping | list) else str(value)
