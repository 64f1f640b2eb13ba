"""What can go wrong between the sidecar and its upstream, and what each exception from below means.

`failure_of` is the only place where exceptions of the network, of TLS and of the HTTP library are understood.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from typing import ClassVar, Final

import h11

from lastword._classify import ErrorInfo, make_error
from lastword._codes import CODES, Code

# Not the upstream's fault: this process or machine has no descriptor, port or memory left.
_NO_ROOM: Final = frozenset({
    errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN,
})  # fmt: skip

_NUMBERED: Final = re.compile(r"\[Errno (\d+)\]")
_QUOTED: Final = re.compile(r":?\s*(?:bytearray\(|\bb['\"])")


class UpstreamError(Exception):
    """The upstream gave no whole answer; what the text says is for the log, for it may name addresses."""

    code: ClassVar[Code] = Code.BAD_GATEWAY
    origin: ClassVar[str] = "engine"

    def info(self) -> ErrorInfo:
        """As the caller is told it."""
        return make_error(self.code, CODES[self.code].brief, origin=self.origin)


class CannotConnect(UpstreamError):
    """Nothing listens there, or its name or its network is not known.  Nothing was sent."""

    code = Code.ENGINE_UNAVAILABLE


class Refused(CannotConnect):
    """The machine says that nothing listens there.  Nothing was sent."""


class ConnectTimedOut(CannotConnect):
    """No connection within the time for it.  Nothing was sent."""


class NotTrusted(UpstreamError):
    """TLS could not be set up: a certificate that is not trusted, or no TLS at all."""


class NoRoom(UpstreamError):
    """This process can open no more connections."""

    code = Code.QUEUE_OVERLOADED
    origin = "shim"


class Unsendable(UpstreamError):
    """The request cannot be put into HTTP/1.1 as it is."""

    code = Code.INVALID_REQUEST_ERROR
    origin = "shim"


class Looped(UpstreamError):
    """The request has been here before, or in too many sidecars: the upstream leads back to where it came from."""

    origin = "shim"


class Broken(UpstreamError):
    """The connection closed or was reset before the answer was whole."""


class Gone(Broken):
    """Likewise, and nothing listens there any more: the engine may have died of this very request."""

    code = Code.ENGINE_UNAVAILABLE


class Unreadable(UpstreamError):
    """What came is no HTTP/1.1, or beyond its limits."""


def failure_of(error: Exception, *, connecting: bool) -> UpstreamError:
    """What an exception means that came while ``connecting``, or later."""
    if isinstance(error, UpstreamError):
        return error
    if isinstance(error, h11.ProtocolError):
        what = _QUOTED.split(str(error))[0]  # a key may be in the rest, or an answer's text
        return Unsendable(what) if isinstance(error, h11.LocalProtocolError) else Unreadable(what)
    if not isinstance(error, OSError | ValueError):  # the WebSocket library's: no handshake as it should be
        return Unreadable(type(error).__name__)
    text = f"{type(error).__name__}: {error}"
    if not connecting:
        return Broken(text)
    if isinstance(error, ssl.SSLError):
        return NotTrusted(text)
    if errno.ECONNREFUSED in _numbers(error):
        return Refused(text)
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return NoRoom(text)
    if isinstance(error, TimeoutError) and error.errno is None:  # ours; the system's has a number
        return ConnectTimedOut("no connection in the time for it")
    return CannotConnect(text) if _a_descriptor_is_left() else NoRoom(f"no descriptor is left; {text}")


def _a_descriptor_is_left() -> bool:
    """Who looks a name up without one says that it is not known, or busy."""
    try:
        socket.socket().close()
    except OSError:
        return False
    return True


def _numbers(error: Exception) -> set[int]:
    """The system's, of a connection that was tried at several addresses of a name all of them: there they are text."""
    said = {int(number) for number in _NUMBERED.findall(str(error))}
    return said | {error.errno} if isinstance(error, OSError) and error.errno is not None else said
