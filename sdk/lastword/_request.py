"""A request made ready to send, and checked before anything is sent.  No I/O."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from lastword._classify import is_request_id, make_error
from lastword._codes import Code
from lastword._completeness import expected_choices
from lastword._deadline import Timeouts
from lastword._errors import LastwordError, error_of
from lastword._models import jsonable

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 §5.6.2
_OURS: Final = ("x-request-attempt", "request-timeout-ms", "content-length", "transfer-encoding", "host")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One call's request: ``headers`` without those that change from attempt to attempt."""

    method: str
    path: str
    headers: dict[str, str]
    content: bytes
    stream: bool
    choices: int
    timeouts: Timeouts
    request_id: str


def prepare(
    method: str,
    path: str,
    params: Mapping[str, object],
    *,
    headers: Mapping[str, str],
    timeouts: Timeouts,
) -> Prepared:
    """Build a request from ``create``'s keyword arguments.

    ``extra_body`` is merged over the body, ``extra_headers`` over ``headers`` (None removes one), ``extra_query`` into the
    URL; ``timeout`` is a ``Timeouts`` or the total in seconds.  Raises ``InvalidRequest`` naming what cannot be sent.
    """
    params = {name: value for name, value in params.items() if not _is_not_given(value)}
    extra_headers = _mapping(params.pop("extra_headers", None), "extra_headers")
    extra_query = _mapping(params.pop("extra_query", None), "extra_query")
    extra_body = _mapping(params.pop("extra_body", None), "extra_body")
    timeouts = _timeouts(params.pop("timeout", None), timeouts)
    merged = _headers(headers, extra_headers)
    request_id = merged.setdefault("x-request-id", str(uuid.uuid4()))
    if not is_request_id(request_id):
        raise invalid("x-request-id", "use 1 to 128 letters, digits and -_.: for the request id")
    if "timeouts" in params:
        raise invalid("timeouts", "a call takes timeout=, seconds in all or a lastword.Timeouts")
    if "stream" in extra_body and bool(extra_body["stream"]) != bool(params.get("stream")):
        raise invalid(
            "extra_body.stream", "say stream=True or stream=False to create, which returns something else for each"
        )
    body = {**params, **extra_body}
    if isinstance(body.get("prompt"), Iterable) and not isinstance(body["prompt"], str | bytes | Mapping):
        body["prompt"] = list(body["prompt"])  # a series or generator counts and is sent as the list it becomes
    merged["accept"] = "text/event-stream" if body.get("stream") else "application/json"
    merged.setdefault(
        "accept-encoding", "identity"
    )  # nothing that could be cut between its last word and its last byte
    if method != "GET":
        merged["content-type"] = "application/json"
    return Prepared(
        method=method,
        path=path + _query(extra_query),
        headers=merged,
        content=_json(body) if method != "GET" else b"",
        stream=bool(body.get("stream")),
        choices=expected_choices(body),
        timeouts=timeouts,
        request_id=request_id,
    )


def invalid(param: str, message: str) -> LastwordError:
    """The error for a request that was not sent because of ``param``; it has an id all the same, for whoever passes it on."""
    text = f"{param}: {message}; nothing was sent"
    return error_of(make_error(Code.INVALID_REQUEST_ERROR, text, param=param, request_id=str(uuid.uuid4())))


def _is_not_given(value: object) -> bool:
    """Whether ``value`` is the openai package's mark for an argument left out."""
    kind = type(value)
    return kind.__name__ in ("NotGiven", "Omit") and kind.__module__.startswith("openai")


def _mapping(value: object, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise invalid(name, f"give a mapping, not a {type(value).__name__}")
    return {str(key): item for key, item in value.items() if not _is_not_given(item)}


def _timeouts(value: object, default: Timeouts) -> Timeouts:
    if value is None:  # None means the default and not "wait for ever": Timeouts(total=None) says that
        return default
    if isinstance(value, Timeouts):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return Timeouts(
                connect=default.connect, first_token=default.first_token, idle=default.idle, total=float(value)
            )
        except (ValueError, OverflowError) as error:
            raise invalid("timeout", str(error)) from error
    raise invalid("timeout", f"give the total in seconds or a lastword.Timeouts, not a {type(value).__name__}")


def _headers(headers: Mapping[str, str], extra: Mapping[str, Any]) -> dict[str, str]:
    merged = {name.lower(): value for name, value in headers.items()}
    for name, value in extra.items():
        if value is None:
            merged.pop(name.lower(), None)
        else:
            merged[name.lower()] = str(value)
    for name, value in merged.items():
        if not _HEADER_NAME.fullmatch(name):
            raise invalid("extra_headers", f"{name!r} is no header name")
        if any(ord(character) < 32 and character != "\t" for character in value) or not value.isascii():
            raise invalid(name, "a header's value is ASCII without line breaks")
    for name in _OURS:
        merged.pop(name, None)
    return merged


def _query(extra: Mapping[str, Any]) -> str:
    try:
        return f"?{urlencode(extra, doseq=True)}" if extra else ""
    except UnicodeEncodeError as error:  # half a surrogate pair
        raise invalid("extra_query", f"cannot be written into a URL ({error})") from error


def _json(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, default=jsonable, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise invalid(_culprit(body), f"cannot be written as JSON ({error})") from error


def _culprit(body: Mapping[str, Any]) -> str:
    for name, value in body.items():
        try:
            json.dumps(value, default=jsonable, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            return name
    return "body"
