"""httpcore's network backend on plain sockets, with a guard where httpcore passes a timeout."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterable
from queue import SimpleQueue
from typing import Any, cast

import httpcore

from lastword._transport._guard import Stopped, SyncGuard

_Addresses = list[tuple[Any, ...]]


class GuardedStream(httpcore.NetworkStream):
    """One TCP or TLS connection; ``spoiled``: it must not be used again."""

    def __init__(self, sock: socket.socket) -> None:
        self.spoiled = False
        self._sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        guard = cast(SyncGuard, timeout)
        try:
            self._sock.settimeout(guard.hold(self._sock))
            data = self._sock.recv(max_bytes)
        except Stopped as error:
            raise httpcore.ReadTimeout("no wait is allowed any more") from error
        except TimeoutError as error:
            guard.expire()
            raise httpcore.ReadTimeout("the wait for bytes ran out") from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error
        if not data and guard.cancelled:  # our own shutdown, and no end of a body
            raise httpcore.ReadError("cancelled")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        guard = cast(SyncGuard, timeout)
        guard.deadline.connected()
        view = memoryview(buffer)
        try:
            while view:
                self._sock.settimeout(guard.hold(self._sock))
                view = view[self._sock.send(view) :]
        except Stopped as error:
            raise httpcore.WriteTimeout("no wait is allowed any more") from error
        except TimeoutError as error:
            guard.expire()
            raise httpcore.WriteTimeout("the wait to send ran out") from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
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
                return self.spoiled or _is_readable(self._sock)  # httpcore drops an idle connection that is
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
        except (Stopped, TimeoutError, OSError) as error:
            raise _connect_error(error, guard) from error
        for family, kind, protocol, _, address in addresses:
            sock: socket.socket | None = None
            try:
                sock = socket.socket(
                    family, kind, protocol
                )  # fails where the family is switched off, or without a free descriptor
                for option in (*(socket_options or ()), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)):
                    sock.setsockopt(*option)
                if local_address is not None:
                    sock.bind((local_address, 0))
                sock.settimeout(guard.hold(sock))
                sock.connect(address)
            except BaseException as error:
                if sock is not None:
                    sock.close()
                if isinstance(error, OSError) and not isinstance(error, TimeoutError) and not guard.cancelled:
                    last = error  # the next address may answer
                    continue
                raise _connect_error(error, guard) from error
            return GuardedStream(sock)
        raise httpcore.ConnectError(str(last)) from last

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise httpcore.UnsupportedProtocol("connections over a Unix socket are not supported")


def _connect_error(error: BaseException, guard: SyncGuard) -> BaseException:
    if isinstance(error, TimeoutError):
        guard.expire()
    if isinstance(error, Stopped | TimeoutError):
        return httpcore.ConnectTimeout("the wait for a connection ran out")
    if isinstance(error, OSError | ValueError):  # ssl.SSLError is an OSError; a bad host name is a ValueError
        return httpcore.ConnectError(str(error))
    return error


def _look_up(host: str, port: int, guard: SyncGuard) -> _Addresses:
    """``getaddrinfo``, which nothing can interrupt, in a thread that nobody waits for longer than the timers allow."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass
    answers: SimpleQueue[_Addresses | OSError] = SimpleQueue()

    def look_up() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.put(OSError(f"the name {host!r} cannot be looked up: {error}"))

    threading.Thread(target=look_up, name="lastword-lookup", daemon=True).start()
    answer = guard.wait_for(answers)
    if isinstance(answer, OSError):
        raise answer
    return answer


def _is_readable(sock: socket.socket) -> bool:
    """Whether a read would return at once; of an idle connection that means that the server closed it."""
    if sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
