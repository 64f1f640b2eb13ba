"""What the sidecar says by itself, where no exchange of the middleware is there to say it, and where it asks."""

from __future__ import annotations

from lastword._classify import ErrorInfo
from lastword_shim.protocol.answer import Context, settle
from lastword_shim.protocol.endings import error_response
from lastword_shim.protocol.wire import Headers, Scope
from lastword_shim.sidecar.address import Address


def error_answer(info: ErrorInfo) -> tuple[int, Headers, bytes]:
    """Status, fields and body of an error on a route that the middleware leaves alone."""
    settled, status = settle(info, Context("", 1))
    fields, body = error_response(settled, ())
    return status, fields, body


def target_of(address: Address, scope: Scope) -> bytes:
    """The request target for the upstream: the path as it was sent, not as it was decoded, and the query."""
    path = scope.get("raw_path") or scope["path"].encode("latin-1", "replace")
    query = scope.get("query_string", b"")
    return b"".join((address.prefix.encode(), path, b"?" + query if query else b""))
