"""One exception table per HTTP library, proved exhaustive."""

from __future__ import annotations

import inspect

import httpx
import pytest

from lastword._transport._httpx import EXCEPTIONS, RAISED, sync_transport


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


def test_the_network_backend_is_ours() -> None:
    """httpx has no option for it; if a release renames the attribute, this fails and not a user's timers."""
    pool = sync_transport("http://127.0.0.1:1", None)._pool
    backend = pool._network_backend
    assert type(backend).__module__ == "lastword._transport._sync"


def test_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY and NO_PROXY mean what they mean everywhere."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "localhost")
    assert type(sync_transport("http://example.test/v1", None)._pool).__name__ == "HTTPProxy"
    assert type(sync_transport("http://localhost:8000/v1", None)._pool).__name__ == "ConnectionPool"
