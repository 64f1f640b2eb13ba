"""The sidecar as a process: it listens, says what it stands in front of, and drains before it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn

from lastword_shim._asgi import Shim
from lastword_shim._listening import BACKLOG, ListenError, end_with_stdin, listen, say_ready
from lastword_shim._settings import Settings, SettingsError
from lastword_shim._start import start_line, unknown_names
from lastword_shim.account import otel_providers
from lastword_shim.sidecar.address import Address, AddressError
from lastword_shim.sidecar.engine import HttpEngine
from lastword_shim.sidecar.health import Health
from lastword_shim.sidecar.keepalive import watch_peer
from lastword_shim.sidecar.pool import Pool
from lastword_shim.sidecar.protocol import server_protocol
from lastword_shim.sidecar.proxy import Proxy

_log: Final = logging.getLogger("lastword_shim")
_GRACE: Final = 3
"""Seconds that connections get to close once every request has had its last word."""
_TICK: Final = 0.1
_FEW_FILES: Final = 4096
_READY: Final = "/lastword/ready"


class StartError(Exception):
    """The sidecar cannot start; the message names the option or setting, and what can be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What to serve, as the options say.

    ``shutdown_timeout`` is how long open requests may take once it is to stop, ``connect_timeout`` and ``keep_alive``
    are the upstream's; all in seconds.  With ``with_stdin`` it stops when standard input ends.
    """

    upstream: str
    host: str = "127.0.0.1"
    port: int = 8080
    shutdown_timeout: float = 30.0
    connect_timeout: float = 5.0
    keep_alive: float = 4.0
    ca: Path | None = None
    with_stdin: bool = False

    def pool(self) -> Pool:
        """The way to the upstream.

        Raises:
            StartError: its URL, or the file of certificates, cannot be used.
        """
        try:
            tls = ssl.create_default_context(cafile=self.ca) if self.ca is not None else None
        except OSError as error:
            raise StartError(f"--upstream-ca {self.ca} cannot be used: {error.strerror or error}") from None
        try:
            address = Address.parse(self.upstream)
        except AddressError as error:
            raise StartError(f"--upstream: {error}") from None
        return Pool(address, connect_timeout=self.connect_timeout, keep_alive=self.keep_alive, tls=tls)

    def listen(self) -> socket.socket:
        """A socket that listens.  Raises ``StartError``."""
        try:
            listener = listen(self.host, self.port)
        except ListenError as error:
            raise StartError(str(error)) from None
        watch_peer(listener)
        return listener


def run(service: Service) -> None:
    """Serve until the process is told to stop.  Raises ``StartError``."""
    pool, settings = service.pool(), _settings(only_look=False)
    listener = service.listen()
    if pool.address.is_that_of(listener):
        listener.close()
        raise StartError(
            f"--upstream {pool.address} is where the sidecar itself listens: another --port is needed, or another URL"
        )
    _raise_file_limit()
    Sidecar(service, pool, settings).run(sockets=[listener])


def check_only(service: Service) -> tuple[bool, str]:
    """Ask the upstream once: whether it is well, and what a start would say.  Raises ``StartError``."""
    pool, settings = service.pool(), _settings(only_look=True)
    if settings.otel:
        try:
            otel_providers.look()
        except otel_providers.OtelError as error:
            raise StartError(str(error)) from None
    health = Health(pool)
    asyncio.run(health.look())
    lines = [f"{pool.address} {health.said}", start_line(settings, HttpEngine(health))[1], unknown_names(os.environ)]
    return health.condition is None, "\n".join(line for line in lines if line is not None)


class Sidecar(uvicorn.Server):
    """A server that drains the middleware when it is told to stop, and then ends with status 0."""

    def __init__(self, service: Service, pool: Pool, settings: Settings) -> None:
        self._service = service
        self._pool = pool
        self._health = Health(pool)
        self._settings = settings
        self._shim = Shim(Proxy(pool, self._health), settings=settings, engine=HttpEngine(self._health))
        if self._shim.fault is not None:
            raise StartError(self._shim.fault)
        if (unknown := unknown_names(os.environ)) is not None:  # the shim has not read them by itself
            _log.warning("%s", unknown)
        super().__init__(_config(self._serve_one, settings))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, look at the upstream, and say both."""
        await super().startup(sockets)
        if self._service.with_stdin:
            end_with_stdin(self)
        looking = asyncio.create_task(self._health.look())
        while not (looking.done() or self.should_exit):
            await asyncio.wait((looking,), timeout=_TICK)
        if self.should_exit:
            looking.cancel()
            return
        level = logging.INFO if self._health.condition is None else logging.WARNING
        _log.log(level, "in front of %s, which %s", self._pool.address, self._health.said)
        assert sockets
        where = sys.stderr if self._settings.records == "-" else sys.stdout
        say_ready(self._service.host, sockets[0], where=where)

    async def _serve_one(self, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == _READY:
            await self._health.refresh()
        await self._shim(scope, receive, send)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain first: new requests are refused, open ones may finish or get their terminals."""
        await self._shim.drain(self._service.shutdown_timeout)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A terminal that closes stops it like the other signals, unless it was told not to care (nohup)."""
        with super().capture_signals():
            before = signal.getsignal(signal.SIGHUP)
            if before is signal.SIG_DFL:
                signal.signal(signal.SIGHUP, self._terminal_closed)
            try:
                yield
            finally:
                signal.signal(signal.SIGHUP, before)

    def _terminal_closed(self, _sig: int, _frame: FrameType | None) -> None:
        """It never counts as the second signal: some send it along with SIGTERM."""
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the second ends at once.  Neither is raised again afterwards."""
        if self.should_exit:
            with contextlib.suppress(Exception):  # whatever was about to be written when it came
                _log.warning("stopped at once: %d open requests get no last word", self._shim.open_requests)
            os._exit(128 + sig)
        self.should_exit = True


def _settings(*, only_look: bool) -> Settings:
    try:
        return Settings.load(only_look=only_look)
    except SettingsError as error:
        raise StartError(str(error)) from None


def _config(app: Any, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=server_protocol(settings.max_header_bytes),
        interface="asgi3",
        lifespan="on",
        log_config=None,  # what it has to say goes where everything goes
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # the upstream is told who the peer is, and what the peer says
        server_header=False,
        date_header=False,  # the upstream's own pass
        timeout_graceful_shutdown=_GRACE,
        backlog=BACKLOG,
        ws_ping_interval=None,
    )


def _raise_file_limit() -> None:
    """To as many descriptors as the system allows; a stream takes two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    if soft != resource.RLIM_INFINITY and soft < _FEW_FILES:
        _log.warning("%d files may be open at a time (ulimit -n): enough for about %d streams", soft, soft // 2 - 32)
