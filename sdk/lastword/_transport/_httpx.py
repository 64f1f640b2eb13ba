"""The HTTP library: httpx's transports on our network backends, and what each of its exceptions means.

The transports are used without ``httpx.Client``: a call here has one request, its own redirects, retries and timers.
"""

from __future__ import annotations

import ssl
import urllib.request
from enum import Enum
from typing import Any, Final
from urllib.parse import urlsplit

import httpcore
import httpx

from lastword._transport._async import GuardedAsyncBackend
from lastword._transport._pool import make_interruptible
from lastword._transport._sync import GuardedBackend

_LIMITS: Final = httpx.Limits(
    max_connections=None,  # waiting for a free connection would be a queue that no timer and no record shows
    max_keepalive_connections=100,
    keepalive_expiry=4.0,  # seconds: less than vLLM's and uvicorn's 5, so that the server never closes one under us
)


class Met(Enum):
    """What a transport exception says about the request."""

    UNSENDABLE = "the request cannot be sent as it is"
    UNREACHED = "the server was not reached"
    BROKEN = "the connection broke: before the headers that is a failed connection, after them a cut answer"
    UNREADABLE = "the answer cannot be read"


EXCEPTIONS: Final[dict[type[Exception], Met]] = {
    httpx.InvalidURL: Met.UNSENDABLE,
    httpx.UnsupportedProtocol: Met.UNSENDABLE,
    httpx.LocalProtocolError: Met.UNSENDABLE,
    httpx.CookieConflict: Met.UNSENDABLE,
    httpx.ConnectError: Met.UNREACHED,
    httpx.ConnectTimeout: Met.UNREACHED,
    httpx.PoolTimeout: Met.UNREACHED,
    httpx.ProxyError: Met.UNREACHED,
    httpx.ReadError: Met.BROKEN,
    httpx.ReadTimeout: Met.BROKEN,
    httpx.WriteError: Met.BROKEN,
    httpx.WriteTimeout: Met.BROKEN,
    httpx.CloseError: Met.BROKEN,
    httpx.RemoteProtocolError: Met.BROKEN,
    httpx.StreamConsumed: Met.BROKEN,
    httpx.StreamClosed: Met.BROKEN,
    httpx.ResponseNotRead: Met.BROKEN,
    httpx.RequestNotRead: Met.BROKEN,
    httpx.DecodingError: Met.UNREADABLE,
    httpx.TooManyRedirects: Met.UNREADABLE,
    httpx.HTTPStatusError: Met.UNREADABLE,
}
"""Every exception of httpx that is not only a base class (a test proves that none is missing)."""

RAISED: Final = (
    httpx.HTTPError,
    httpx.StreamError,
    httpx.InvalidURL,
    httpx.CookieConflict,
    httpcore.ConnectionNotAvailable,
)
"""What a transport may raise."""


def meaning(error: Exception) -> Met:
    """What ``error`` says, by the nearest class in ``EXCEPTIONS``."""
    return next((EXCEPTIONS[cls] for cls in type(error).__mro__ if cls in EXCEPTIONS), Met.BROKEN)


def refused_the_certificate(error: Exception) -> bool:
    """Whether the server's certificate was refused, which the next attempt would meet as well.

    By OpenSSL's name for it, in the message: the chain of causes may hold an unrelated error that the caller is handling.
    """
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def was_reset(error: Exception) -> bool:
    """Whether the connection was reset, rather than closed early."""
    return isinstance(error, httpx.ReadError)


def sync_transport(base_url: str, ssl_context: ssl.SSLContext | None) -> httpx.HTTPTransport:
    """A pool of connections to ``base_url``, through the environment's proxy if it names one."""
    transport = httpx.HTTPTransport(limits=_LIMITS, **_options(base_url, ssl_context))
    transport._pool._network_backend = GuardedBackend()  # httpx passes every other option of the pool on
    make_interruptible(transport)
    return transport


def async_transport(base_url: str, ssl_context: ssl.SSLContext | None) -> httpx.AsyncHTTPTransport:
    """The same for async calls."""
    transport = httpx.AsyncHTTPTransport(limits=_LIMITS, **_options(base_url, ssl_context))
    transport._pool._network_backend = GuardedAsyncBackend()
    return transport


def _options(base_url: str, ssl_context: ssl.SSLContext | None) -> dict[str, Any]:
    options: dict[str, Any] = {"verify": True if ssl_context is None else ssl_context}
    url = urlsplit(base_url)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if proxy and not urllib.request.proxy_bypass(url.netloc):
        options["proxy"] = proxy if "://" in proxy else f"http://{proxy}"
    return options
