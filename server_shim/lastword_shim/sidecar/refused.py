"""What the sidecar says by itself of a request that cannot be read."""

from __future__ import annotations

from typing import Final

from lastword._classify import ErrorInfo, make_error
from lastword._codes import Code

_REMEDY: Final = "Let the client, or the proxy before it, frame its requests as the standard says (RFC9112)"


def malformed(what: str) -> ErrorInfo:
    """The ``head`` or the ``body`` of a request is none."""
    remedy = f"{_REMEDY}: a body needs one content-length that is true, or chunks."
    return _invalid(f"The {what} of the request cannot be read as HTTP, and nothing after it. {remedy}")


def no_handshake() -> ErrorInfo:
    """It asks for a WebSocket as none may."""
    message = (
        "The request asks for a WebSocket (Upgrade: websocket), and its handshake is none: that is a GET with "
        "sec-websocket-key, without a body, and not behind another request. For a plain answer leave out Upgrade."
    )
    return _invalid(message, param="upgrade")


def too_slow(what: str, seconds: float) -> ErrorInfo:
    """Its ``head`` or its ``body`` came no further."""
    message = f"The {what} of the request was not whole after {seconds:g} seconds"
    return _invalid(f"{message}{' without a byte of it' if what == 'body' else ''}. Send it in one go.")


def too_long(what: str, limit: int) -> ErrorInfo:
    """More than ``limit`` bytes of a head without an end, or of a body's framing and trailers."""
    message = f"The {what} of the request goes on after {limit} bytes; this server takes no larger one."
    return make_error(Code.REQUEST_TOO_LARGE, message, origin="shim", details={"max_bytes": limit})


def _invalid(message: str, param: str | None = None) -> ErrorInfo:
    return make_error(Code.INVALID_REQUEST_ERROR, message, origin="shim", param=param)
