"""One exception table per HTTP library, proved exhaustive."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from lastword._transport._httpx import EXCEPTIONS, RAISED, async_transport, sync_transport


def exceptions_of_httpx() -> set[type[Exception]]:
    """Every exception class that httpx exports."""
    return {value for value in vars(httpx).values() if inspect.isclass(value) and issubclass(value, Exception)}


def test_every_exception_of_httpx_has_a_meaning() -> None:
    """A class without subclasses is one that can be raised; each must be in the table."""
    every = exceptions_of_httpx()
    leaves = {cls for cls in every if not any(other is not cls and issubclass(other, cls) for other in every)}
    assert leaves - set(EXCEPTIONS) == set()


@pytest.mark.parametrize("cls", sorted(exceptions_of_httpx(), key=str))
def test_every_exception_of_httpx_is_caught(cls: type[Exception]) -> None:
    """What a transport may raise is what the client catches."""
    assert issubclass(cls, RAISED)


@pytest.mark.parametrize(
    ("bare", "ours", "module"),
    [
        (httpx.HTTPTransport, sync_transport, "lastword._transport._sync"),
        (httpx.AsyncHTTPTransport, async_transport, "lastword._transport._async"),
    ],
)
def test_the_network_backend_is_ours(bare: Callable[[], Any], ours: Callable[..., Any], module: str) -> None:
    """httpx has no option for it; if a release renames the attribute, this fails and not a user's timers."""
    assert hasattr(bare()._pool, "_network_backend")
    assert type(ours("http://127.0.0.1:1", None)._pool._network_backend).__module__ == module


def test_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY and NO_PROXY mean what they mean everywhere."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "localhost")
    assert type(sync_transport("http://example.test/v1", None)._pool).__name__ == "HTTPProxy"
    assert type(sync_transport("http://localhost:8000/v1", None)._pool).__name__ == "ConnectionPool"
