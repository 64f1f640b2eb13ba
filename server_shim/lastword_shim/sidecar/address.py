"""Where the upstream is: one URL, taken apart and checked before anything is started."""

from __future__ import annotations

import contextlib
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from lastword._url import shown_url
from lastword_shim.protocol.wire import Scope

_EXAMPLE: Final = "give a URL such as http://127.0.0.1:8000"
_PATH: Final = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@%/]*")
_PORTS: Final = {"http": 80, "https": 443}


class AddressError(ValueError):
    """The URL cannot be used; the message says why, and what can."""


@dataclass(frozen=True, slots=True)
class Address:
    """``host`` as the system looks it up, ``prefix`` what goes before each request's path (no slash at its end)."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def secure(self) -> bool:
        """Whether TLS is spoken."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """As in a Host field: without the scheme's own port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def target(self, scope: Scope) -> bytes:
        """What is asked for there: the path as it was sent, not as it was decoded, and the query."""
        path = scope.get("raw_path") or scope["path"].encode("latin-1", "replace")
        query = scope.get("query_string", b"")
        return b"".join((self.prefix.encode(), path, b"?" + query if query else b""))

    def is_that_of(self, listener: socket.socket) -> bool:
        """Whether it is ``listener`` that listens there, as far as names can be looked up now."""
        bound, port = listener.getsockname()[:2]
        if port != self.port:
            return False
        with contextlib.suppress(OSError, UnicodeError):
            found = socket.getaddrinfo(self.host, port, listener.family, socket.SOCK_STREAM)
            return any(_meets(str(place[0]), bound, listener.family) for *_, place in found)
        return False

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.prefix}"

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read a base URL.  A path's last ``/v1`` is left out: callers' own paths begin with it.

        Raises:
            AddressError: it is none, or says more than an address.
        """
        shown = shown_url(url)
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise AddressError(f"{shown!r} is no URL: {_EXAMPLE}") from None
        if parts.scheme not in _PORTS or not host:
            raise AddressError(f"{shown!r} is no http:// or https:// URL: {_EXAMPLE}")
        if parts.username is not None or parts.password is not None:
            raise AddressError(
                "the URL holds a name or a password, which are not passed on: callers send their own key"
            )
        if parts.query or parts.fragment or _PATH.fullmatch(parts.path) is None:
            raise AddressError(f"{shown!r} has more than a host, a port and a path: {_EXAMPLE}")
        try:
            host.encode("ascii" if ":" in host else "idna")
        except UnicodeError:
            raise AddressError(f"{shown!r} has no host name that can be looked up: {_EXAMPLE}") from None
        prefix = parts.path.rstrip("/").removesuffix("/v1")
        return cls(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, prefix)


def _meets(host: str, bound: str, family: int) -> bool:
    """Whether who connects to ``host`` meets what is ``bound``, both addresses of one family."""
    if host == bound:
        return True
    asked = ip_address(host.partition("%")[0])
    if not ip_address(bound.partition("%")[0]).is_unspecified:
        return asked.is_unspecified and ip_address(bound.partition("%")[0]).is_loopback
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))  # only what is this machine's own can be
        except OSError:
            return False
    return True
