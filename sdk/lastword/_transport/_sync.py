"""httpcore's network backend on plain sockets, with a guard where httpcore passes a timeout."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, cast

import httpcore

from lastword._transport._guard import Stopped, SyncGuard
from lastword._transport._lookup import Addresses, look_up, numeric
from lastword._transport._upload import LOOK_SECONDS, PIECE, has_answered, is_readable


class GuardedStream(httpcore.NetworkStream):
    """One TCP or TLS connection; ``spoiled``: it must not be used again.

    Another thread may close it while this one waits.  The descriptor then stays until the waiting thread is out: its number
    would go to the next socket of the process, and the wait to a stranger.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.spoiled = False
        self._sock = sock
        self._inside = False
        self._closing = False
        self._process = os.getpid()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        guard = cast(SyncGuard, timeout)
        try:
            self._enter()
            self._sock.settimeout(guard.hold(self._sock))
            data = self._sock.recv(max_bytes)
        except Stopped as error:
            raise httpcore.ReadTimeout("no wait is allowed any more") from error
        except OSError as error:
            if not _ran_out(error):
                raise httpcore.ReadError(str(error)) from error
            guard.expire()
            raise httpcore.ReadTimeout("the wait for bytes ran out") from error
        finally:
            self._leave()
        if not data and guard.cancelled:  # our own shutdown, and no end of a body
            raise httpcore.ReadError("cancelled")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        guard = cast(SyncGuard, timeout)
        guard.deadline.connected()
        view = memoryview(buffer)
        watched = len(view) > PIECE
        try:
            self._enter()
            while view:
                view = view[self._send(view[:PIECE], guard, watched=watched) :]
                if watched and view and has_answered(self._sock):
                    raise httpcore.WriteError("the server answered before it had the whole request")
        except Stopped as error:
            raise httpcore.WriteTimeout("no wait is allowed any more") from error
        except OSError as error:
            if not _ran_out(error):
                raise httpcore.WriteError(str(error)) from error
            guard.expire()
            raise httpcore.WriteTimeout("the wait to send ran out") from error
        finally:
            self._leave()

    def _send(self, piece: memoryview, guard: SyncGuard, *, watched: bool) -> int:
        seconds = guard.hold(self._sock)
        self._sock.settimeout(min(seconds or LOOK_SECONDS, LOOK_SECONDS) if watched else seconds)
        try:
            return self._sock.send(piece)
        except TimeoutError as error:
            if not watched or not _ran_out(error):
                raise
            return 0  # time for a look; the guard tells when there is none left

    def close(self) -> None:
        self._closing = True
        if self._inside and self._process == os.getpid():  # a forked child has a copy that nobody waits on
            with suppress(OSError):
                socket.socket.shutdown(self._sock, socket.SHUT_RDWR)
        else:
            self._sock.close()

    def _enter(self) -> None:
        self._inside = True  # before the look: of a close and a wait that meet, one sees the other
        if self._closing:
            raise OSError("the connection is closed")

    def _leave(self) -> None:
        self._inside = False
        if self._closing:
            self._sock.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        guard = cast(SyncGuard, timeout)
        guard.connecting()
        if isinstance(self._sock, ssl.SSLSocket):
            self.close()
            raise httpcore.ConnectError("TLS to a server through a TLS proxy is not supported: use an http:// proxy")
        try:
            self._sock.settimeout(guard.hold(self._sock))
            # The handshake is separate so that the guard holds the new socket while it lasts.
            self._sock = ssl_context.wrap_socket(
                self._sock, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            self._sock.settimeout(guard.hold(self._sock))
            self._sock.do_handshake()
        except BaseException as error:
            self._sock.close()
            raise _connect_error(error, guard) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "ssl_object":
                return self._sock if isinstance(self._sock, ssl.SSLSocket) else None
            case "socket":
                return self._sock
            case "client_addr":
                return self._sock.getsockname()
            case "server_addr":
                return self._sock.getpeername()
            case "is_readable":
                # httpcore drops an idle connection that is: the server has closed it
                return self.spoiled or self._sock.fileno() < 0 or is_readable(self._sock)
        return None


class GuardedBackend(httpcore.NetworkBackend):
    """Opens connections that a guard can time and cut, name lookup included."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        guard = cast(SyncGuard, timeout)
        guard.connecting()
        last: BaseException | None = None
        try:
            addresses = _look_up(host, port, guard)
        except (Stopped, OSError) as error:
            raise _connect_error(error, guard) from error
        for more, address in zip(range(len(addresses) - 1, -1, -1), addresses, strict=True):
            try:
                return GuardedStream(_open(address, guard, more, local_address, socket_options or ()))
            except BaseException as error:
                if not isinstance(error, OSError) or guard.cancelled or (_ran_out(error) and not more):
                    raise _connect_error(error, guard) from error
                last = error  # the next address may answer
        raise httpcore.ConnectError(str(last)) from last

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise httpcore.UnsupportedProtocol("connections over a Unix socket are not supported")


def _open(
    address: tuple[Any, ...], guard: SyncGuard, more: int, local_address: str | None, options: Iterable[Any]
) -> socket.socket:
    """Connect to one address; ``more`` are left, and each has its share of the time."""
    family, kind, protocol, _, place = address
    sock = socket.socket(family, kind, protocol)
    try:
        for option in (*options, (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)):
            sock.setsockopt(*option)
        if local_address is not None:
            sock.bind((local_address, 0))
        seconds = guard.hold(sock)
        sock.settimeout(None if seconds is None else seconds / (more + 1))
        sock.connect(place)
    except BaseException:
        sock.close()
        raise
    return sock


def _connect_error(error: BaseException, guard: SyncGuard) -> BaseException:
    if _ran_out(error):
        guard.expire()
    if isinstance(error, Stopped) or _ran_out(error):
        return httpcore.ConnectTimeout("the wait for a connection ran out")
    if isinstance(error, OSError | ValueError):  # ssl.SSLError is an OSError; a bad host name is a ValueError
        return httpcore.ConnectError(str(error))
    return error


def _ran_out(error: BaseException) -> bool:
    """Whether our own wait ended; the system's ETIMEDOUT, of a connection that is lost, has a number."""
    return isinstance(error, TimeoutError) and error.errno is None


def _look_up(host: str, port: int, guard: SyncGuard) -> Addresses:
    known = numeric(host, port)
    if known is not None:
        return known
    answers: SimpleQueue[Addresses | OSError] = SimpleQueue()
    look_up(host, port, answers.put)
    answer = guard.wait_for(answers)
    if isinstance(answer, OSError):
        raise answer
    return answer
