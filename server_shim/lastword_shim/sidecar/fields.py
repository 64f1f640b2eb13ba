"""Which header fields pass the sidecar, and what it adds: RFC 9110 §7.6."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Set
from typing import Final

from lastword_shim.admission.refusals import read_deadline
from lastword_shim.protocol.wire import Headers, Scope
from lastword_shim.sidecar.address import Address
from lastword_shim.sidecar.failures import Looped

_OF_ONE_HOP: Final = frozenset({
    b"connection", b"proxy-connection", b"keep-alive", b"te", b"transfer-encoding", b"upgrade", b"trailer", b"http2-settings",
})  # fmt: skip
# Expect: the server in front has said 100 Continue by the time that a body comes.
_OUR_OWN: Final = frozenset({b"host", b"content-length", b"expect", b"via", b"x-forwarded-for"})
# The middleware has put them in: a caller's ``Connection`` takes none of them out again.
_OF_THE_MIDDLEWARE: Final = frozenset({b"x-request-id", b"accept-encoding", b"traceparent", b"tracestate"})
_FAMILY: Final = b"lastword-"
_NAME: Final = _FAMILY + secrets.token_hex(4).encode()
"""What this process calls itself in ``Via``, as no other does: a request that has it already comes in a circle."""
MOST_HOPS: Final = 10
"""Sidecars that a request may have passed."""
_DEADLINE: Final = b"request-timeout-ms"


def inward(scope: Scope, address: Address, body: Headers, *, spent: float = 0.0) -> Headers:
    """The fields of a request as the upstream gets them; ``body`` are those that say how its body is framed.

    ``spent`` are the seconds that it has been here: the upstream is told what is left of the caller's deadline, and not
    the whole of it again.

    Host is the caller's, so that redirects lead back here; under TLS it is the upstream's own, which certificates and
    virtual hosts go by.

    Raises:
        Looped: it has been here before.
    """
    given: Headers = [(bytes(name).lower(), bytes(value)) for name, value in scope["headers"]]
    given = [(name, _left(value, spent) if name == _DEADLINE else value) for name, value in given]
    values = dict(given)
    asked_host, own_host = values.get(b"host", b""), address.authority.encode()
    fields: Headers = [(b"host", own_host if address.secure else asked_host or own_host)]
    fields += without_hop(given, also=_OUR_OWN, kept=_OF_THE_MIDDLEWARE)
    client = scope.get("client")
    fields += _list(given, b"x-forwarded-for", str(client[0]).encode() if client else b"")
    if b"x-forwarded-proto" not in values:
        secure = scope["scheme"] in {"https", "wss"}
        fields.append((b"x-forwarded-proto", b"https" if secure else b"http"))
    if b"x-forwarded-host" not in values and asked_host:
        fields.append((b"x-forwarded-host", asked_host))
    _stop_circles(value for name, value in given if name == b"via")
    version = scope.get("http_version", "1.1").encode()
    return fields + _list(given, b"via", version + b" " + _NAME) + body


def outward(status: int, fields: Headers) -> Headers:
    """The fields of an answer as the caller gets them."""
    framed = any(name == b"transfer-encoding" for name, _ in fields)
    # A length beside chunks is none (RFC 9112 §6.3); that of a 304 tells of a body that is not here.
    also = frozenset({b"content-length"}) if framed or status in {204, 304} else frozenset()
    return without_hop(fields, also=also)


def without_hop(fields: Headers, *, also: Iterable[bytes] = (), kept: Set[bytes] = frozenset()) -> Headers:
    """Without the fields that are about one connection, those that ``Connection`` names included, but for ``kept``."""
    dropped = {*_OF_ONE_HOP, *also}
    for name, value in fields:
        if name == b"connection":
            dropped.update({option.strip().lower() for option in value.split(b",")} - kept)
    return [(name, value) for name, value in fields if name not in dropped]


def _stop_circles(vias: Iterable[bytes]) -> None:
    hops = [word for via in vias for word in via.replace(b",", b" ").split() if word.startswith(_FAMILY)]
    if _NAME in hops:
        raise Looped("the request has come back to this sidecar: its upstream leads here")
    if len(hops) >= MOST_HOPS:
        raise Looped(f"the request has come through {len(hops)} sidecars")


def _left(deadline: bytes, spent: float) -> bytes:
    """What is left of it, at least 1 ms: none is no deadline.  What cannot be read passes as it is."""
    told = read_deadline(deadline.decode("latin-1"))
    return str(max(told - int(spent * 1000), 1)).encode() if isinstance(told, int) else deadline


def _list(fields: Headers, name: bytes, last: bytes) -> Headers:
    """One field with all that was in those of its name, and ``last``."""
    values = [value for key, value in [*fields, (name, last)] if key == name and value]
    return [(name, b", ".join(values))] if values else []
