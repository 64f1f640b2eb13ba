"""What each exception from below means: one place, and nothing that it does not know."""

from __future__ import annotations

import builtins
import errno
import inspect
import socket
import ssl
from collections.abc import Iterator

import h11
import pytest
import websockets.exceptions

from lastword._codes import CODES, Category
from lastword_shim.sidecar import failures
from lastword_shim.sidecar.failures import (
    Broken,
    CannotConnect,
    ConnectTimedOut,
    NoRoom,
    NotTrusted,
    Refused,
    Unreadable,
    Unsendable,
    UpstreamError,
    failure_of,
)

SECRET = "sk-not-for-the-log"


def below(*bases: type[Exception], inside: object) -> Iterator[type[Exception]]:
    for value in vars(inside).values():
        if inspect.isclass(value) and issubclass(value, bases):
            yield value


NETWORK = sorted(
    {*below(OSError, inside=builtins), *below(OSError, inside=socket), *below(OSError, inside=ssl)}, key=str
)
PROTOCOL = sorted(set(below(h11.ProtocolError, inside=h11)) - {h11.ProtocolError}, key=str)


@pytest.mark.parametrize("kind", NETWORK)
def test_every_exception_of_the_network_has_a_meaning(kind: type[OSError]) -> None:
    """Before there was a connection nothing was sent; afterwards nobody knows what became of the request."""
    early, late = (failure_of(kind(errno.ECONNREFUSED, "refused"), connecting=each) for each in (True, False))
    assert type(early) is (NotTrusted if issubclass(kind, ssl.SSLError) else Refused)
    assert type(late) is Broken


@pytest.mark.parametrize("kind", PROTOCOL)
def test_every_exception_of_the_http_library_has_a_meaning(kind: type[Exception]) -> None:
    """And what it quotes, a field's value or an answer's words, goes no further."""
    for text in (f"illegal header value b'{SECRET}'", f"illegal status line: bytearray(b'{SECRET}')"):
        found = failure_of(kind(text), connecting=False)
        assert type(found) is (Unsendable if issubclass(kind, h11.LocalProtocolError) else Unreadable)
        assert SECRET not in str(found)
        assert str(found).startswith("illegal")


@pytest.mark.parametrize(
    "kind", sorted(below(websockets.exceptions.WebSocketException, inside=websockets.exceptions), key=str)
)
def test_every_exception_of_the_websocket_library_has_a_meaning(kind: type[Exception]) -> None:
    found = failure_of(kind.__new__(kind), connecting=True)
    assert type(found) is Unreadable
    assert str(found) == kind.__name__


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (TimeoutError(), ConnectTimedOut),
        (TimeoutError(errno.ETIMEDOUT, "timed out"), CannotConnect),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), Refused),
        (
            OSError("Multiple exceptions: [Errno 99] no address ('::1', 9, 0, 0), [Errno 111] Connect call failed"),
            Refused,
        ),
        (OSError("Multiple exceptions: [Errno 101] unreachable, [Errno 113] no route"), CannotConnect),
        (OSError(errno.EMFILE, "too many open files"), NoRoom),
        (OSError(errno.EADDRNOTAVAIL, "no port is left"), NoRoom),
        (socket.gaierror(socket.EAI_NONAME, "not known"), CannotConnect),
        (ssl.SSLCertVerificationError("self-signed"), NotTrusted),
        (UnicodeError("label too long"), CannotConnect),
    ],
)
def test_why_there_is_no_connection(error: Exception, meaning: type[UpstreamError]) -> None:
    assert type(failure_of(error, connecting=True)) is meaning


def test_every_failure_has_a_code_of_the_registry() -> None:
    """What is told is the registry's sentence; what went wrong in detail may name addresses, and is for the log."""
    found = {value for value in vars(failures).values() if inspect.isclass(value) and issubclass(value, UpstreamError)}
    assert len(found) > 7
    for kind in found:
        info = kind(f"10.1.2.3 {SECRET}").info()
        assert info.message == CODES[kind.code].brief
        assert info.code in CODES
        assert (CODES[kind.code].category is Category.FIXABLE) == (kind is Unsendable)
        assert failure_of(kind("x"), connecting=True).code == kind.code
