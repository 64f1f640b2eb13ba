"""httpcore's async network backend on anyio, with a guard where httpcore passes a timeout."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

import anyio
import httpcore

from lastword._transport._guard import AsyncGuard, Stopped
from lastword._transport._lookup import async_look_up
from lastword._transport._upload import LOOK_SECONDS, PIECE, has_answered

_T = TypeVar("_T")

HEAD_START = 0.25
"""Seconds that an address is given before the next one is tried as well."""


class GuardedAsyncStream(httpcore.AsyncNetworkStream):
    """One TCP or TLS connection: httpcore's own stream, with the guard's scope around each wait.

    ``spoiled``: it must not be used again.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream, raw_socket: Any = None) -> None:
        self.spoiled = False
        self._stream = stream
        self._secret = stream.get_extra_info("ssl_object") is not None
        self._raw_socket = raw_socket or _can_be_shut(stream.get_extra_info("socket"))

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        guard = cast(AsyncGuard, timeout)
        guard.hold(self._raw_socket)
        try:
            with guard.scope() as scope:
                return await self._stream.read(max_bytes)
            guard.after(scope)
        except Stopped as error:
            raise httpcore.ReadTimeout("the wait for bytes ran out") from error
        raise httpcore.ReadError("cancelled")

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        guard = cast(AsyncGuard, timeout)
        guard.deadline.connected()
        guard.hold(self._raw_socket)
        guard.unused = None
        try:
            if self._secret or len(buffer) <= PIECE:
                await _guarded(guard, partial(self._stream.write, buffer))
            else:
                for start in range(0, len(buffer), PIECE):
                    await self._write_watching(guard, buffer[start : start + PIECE])
        except Stopped as error:
            raise httpcore.WriteTimeout("the wait to send ran out") from error

    async def _write_watching(self, guard: AsyncGuard, piece: bytes) -> None:
        failures: list[Exception] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_answered, tasks.cancel_scope)
            try:
                await _guarded(guard, partial(self._stream.write, piece))
            except (Stopped, httpcore.NetworkError) as error:
                failures.append(error)  # as it is, and not in a group
            tasks.cancel_scope.cancel()
        if has_answered(self._raw_socket):
            raise httpcore.WriteError("the server answered before it had the whole request")
        if failures:
            raise failures[0]

    async def _until_answered(self, writing: anyio.CancelScope) -> None:
        while not has_answered(self._raw_socket):  # noqa: ASYNC110 (a socket is no event, and its loop watches it already)
            await anyio.sleep(LOOK_SECONDS)
        writing.cancel()

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            if isinstance(self._raw_socket, socket.socket):
                self._raw_socket.close()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        guard = cast(AsyncGuard, timeout)
        guard.connecting()
        guard.hold(self._raw_socket)
        try:
            stream = await _guarded(guard, lambda: self._stream.start_tls(ssl_context, server_hostname))
            guard.unused = guarded = GuardedAsyncStream(stream, self._raw_socket)
            return guarded
        except Stopped as error:
            await self.aclose()
            raise httpcore.ConnectTimeout("the wait for a connection ran out") from error

    def get_extra_info(self, info: str) -> Any:
        return (info == "is_readable" and self.spoiled) or self._stream.get_extra_info(info)


class GuardedAsyncBackend(httpcore.AsyncNetworkBackend):
    """Opens connections that a guard can time and cut."""

    def __init__(self) -> None:
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        guard = cast(AsyncGuard, timeout)
        guard.connecting()

        def connect(ip: str) -> Awaitable[httpcore.AsyncNetworkStream]:
            return self._backend.connect_tcp(ip, port, local_address=local_address, socket_options=socket_options)

        async def look_up_and_connect() -> httpcore.AsyncNetworkStream:
            ips = await async_look_up(host, port)
            return await (connect(ips[0]) if len(ips) == 1 else _first(ips, connect))

        try:
            guard.unused = guarded = GuardedAsyncStream(await _guarded(guard, look_up_and_connect))
            return guarded
        except Stopped as error:
            raise httpcore.ConnectTimeout("the wait for a connection ran out") from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.UnsupportedProtocol("connections over a Unix socket are not supported")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


async def _first(
    ips: list[str], connect: Callable[[str], Awaitable[httpcore.AsyncNetworkStream]]
) -> httpcore.AsyncNetworkStream:
    """The first connection that stands; each address has a head start over the next (RFC 8305)."""
    won: list[httpcore.AsyncNetworkStream] = []
    failures: list[Exception] = []

    async def attempt(ip: str, failed: anyio.Event) -> None:
        try:
            stream = await connect(ip)
        except Exception as error:  # noqa: BLE001 (raised below if no address answers)
            failures.append(error)
            failed.set()
        else:
            won.append(stream)
            attempts.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as attempts:
            for ip in ips:
                failed = anyio.Event()
                attempts.start_soon(attempt, ip, failed)
                with anyio.move_on_after(HEAD_START):
                    await failed.wait()
    except BaseException:
        await _close_all(won)
        raise
    await _close_all(won[1:])
    if won:
        return won[0]
    raise failures[0]


async def _close_all(streams: list[httpcore.AsyncNetworkStream]) -> None:
    with anyio.CancelScope(shield=True):
        for stream in streams:
            await stream.aclose()


async def _guarded(guard: AsyncGuard, wait: Callable[[], Awaitable[_T]]) -> _T:
    with guard.scope() as scope:
        return await wait()
    guard.after(scope)
    raise Stopped


def _can_be_shut(raw_socket: Any) -> Any:
    """``raw_socket``, or where the loop does not let go of it (uvloop) a handle of our own on the same connection."""
    if not type(raw_socket).__module__.startswith("uvloop"):
        return raw_socket
    with suppress(OSError):  # no free descriptor
        return socket.socket(fileno=os.dup(raw_socket.fileno()))
    return None
