"""Why a request is not let in, and what tells it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from lastword._classify import ErrorInfo, make_error
from lastword._codes import CODES, Code

_MAX_DEADLINE_DIGITS: Final = 12
_MAX_DIGITS: Final = 20  # of a length; Python reads no more than 4300


class Refusal(Exception):
    """The request is not let in, by the shim or, once its prompt's length is known, to the engine; ``error`` says why."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.error = error


def overloaded(numbers: Mapping[str, int], pause: float) -> ErrorInfo:
    """No place to wait in; ``numbers`` are the bounds and how they are used, ``pause`` is when to come again (seconds)."""
    brief = CODES[Code.QUEUE_OVERLOADED].brief
    return make_error(Code.QUEUE_OVERLOADED, brief, origin="shim", details=numbers, retry_after=pause)


def too_late(patience: float, wait: float, numbers: Mapping[str, int], pause: float) -> ErrorInfo:
    """Its turn would come when its caller has given up (``patience`` and ``wait`` in seconds)."""
    details = {**numbers, "deadline_ms": round(patience * 1000), "estimated_wait_ms": round(wait * 1000)}
    message = (
        f"The request would not begin before its caller gives up: about {details['estimated_wait_ms']} ms until its "
        f"turn, as fast as others get theirs now, and {details['deadline_ms']} ms are left of its time."
    )
    return make_error(Code.QUEUE_OVERLOADED, message, origin="shim", details=details, retry_after=pause)


def head_too_large(size: int, limit: int) -> ErrorInfo:
    """Headers and path over ``max_header_bytes``."""
    message = f"The head of the request has {size} bytes; this server takes {limit}."
    details = {"header_bytes": size, "max_header_bytes": limit}
    return make_error(Code.REQUEST_TOO_LARGE, message, origin="shim", details=details)


def too_large(limit: int) -> ErrorInfo:
    """A body over ``max_body_bytes``."""
    message = f"The request body is larger than the {limit} bytes that this server takes."
    return make_error(Code.REQUEST_TOO_LARGE, message, origin="shim", details={"max_body_bytes": limit})


def declared_length(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """The ``content-length``, 0 where there is none."""
    values = [value for name, value in headers if name == b"content-length"]
    return int(values[0][:_MAX_DIGITS]) if values and values[0].isdigit() else 0  # of more digits some say enough


def lost_in_upgrade(headers: Mapping[str, str]) -> bool:
    """Whether a body was promised beside a wish for another protocol: some servers (uvicorn with httptools) lose it then."""
    promised = headers.get("content-length", "0").strip("0") or "transfer-encoding" in headers
    return bool(promised and headers.get("upgrade", "").strip())


def upgraded() -> ErrorInfo:
    """A body that was lost so."""
    message = (
        "The request's body did not arrive: the request asks to go on in another protocol (Upgrade, as h2c for HTTP/2), "
        "and the HTTP server drops the body of such a request. Let the client speak HTTP/1.1 without it, "
        "in Java: HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)."
    )
    return make_error(Code.INVALID_REQUEST_ERROR, message, origin="shim", param="upgrade")


def read_deadline(text: str | None) -> int | ErrorInfo | None:
    """``request-timeout-ms``: milliseconds from receipt, None where absent (HDR rules)."""
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DEADLINE_DIGITS and int(text) > 0:
        return int(text)
    message = "The header request-timeout-ms must be a positive whole number of milliseconds."
    return make_error(Code.INVALID_REQUEST_ERROR, message, origin="shim", param="request-timeout-ms")


def shutting_down() -> ErrorInfo:
    """The server stops."""
    return make_error(Code.SERVER_SHUTTING_DOWN, CODES[Code.SERVER_SHUTTING_DOWN].brief, origin="shim")


def asleep() -> ErrorInfo:
    """The engine would take the request and not begin with it before somebody wakes it."""
    message = "The engine is asleep, and serves again once it has been woken."
    return make_error(Code.MODEL_LOADING, message, origin="shim")
