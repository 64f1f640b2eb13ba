"""vLLM's shutdown, seen before it begins."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any, Final

from lastword_shim.engine import Host
from lastword_shim.engine.vllm.missing import missing
from lastword_shim.protocol.redact import loggable_traceback

_log: Final = logging.getLogger("lastword_shim")
GRACEFUL_SHUTDOWN: Final = 3
"""Seconds that the HTTP server waits for connections once every request has had its terminal; vLLM sets no limit."""
KILLED_EARLY: Final = 2.0
"""Seconds of the shutdown timeout that are left for terminals where vLLM runs several API servers: it kills what has
not ended by then, and the last words have to be said before."""


class Stopping:
    """Drains the shim before vLLM stops its engine."""

    def __init__(self, client: Any, server: Any, *, processes: int = 1) -> None:
        self._client = client
        self._server = server
        self._reserve = KILLED_EARLY if processes > 1 else 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._host: Host | None = None

    def attach(self, host: Host, loop: asyncio.AbstractEventLoop) -> None:
        """Wrap ``shutdown``, and limit the HTTP server's own."""
        self._host, self._loop = host, loop
        if callable(getattr(self._client, "shutdown", None)):
            self._original_shutdown = self._client.shutdown
            self._client.shutdown = self._shutdown
        else:
            missing("shutdown", "open requests get no terminal when the server stops")
        self._limit_graceful_shutdown()

    def _shutdown(self, timeout: float | None = None) -> None:
        """In place of ``AsyncLLM.shutdown``, which vLLM's signal handler calls first of all, in a thread of its own.

        The engine lives on while open requests finish; it is stopped with what is left of the time.
        """
        started = time.monotonic()
        loop, host = self._loop, self._host
        if timeout is not None and loop is not None and host is not None and loop.is_running() and not _is_in(loop):
            drained = asyncio.run_coroutine_threadsafe(host.drain(max(timeout - self._reserve, 0.0)), loop)
            try:
                drained.result(timeout + 5.0)
            except Exception as error:  # noqa: BLE001 (whatever happened, the engine must be stopped)
                _log.error("open requests could not be ended in order\n%s", loggable_traceback(error))
        left = None if timeout is None else max(timeout - (time.monotonic() - started), 0.0)
        self._original_shutdown(timeout=left)

    def _limit_graceful_shutdown(self) -> None:
        """From the start on: when the engine dies, vLLM stops its HTTP server without a word to us."""
        config: Any = getattr(self._server, "config", None)
        if not hasattr(config, "timeout_graceful_shutdown"):
            missing("server.config.timeout_graceful_shutdown", "a client that does not read can keep the process")
        elif config.timeout_graceful_shutdown is None:
            config.timeout_graceful_shutdown = GRACEFUL_SHUTDOWN


def _is_in(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return threading.get_ident() == getattr(loop, "_thread_id", None)
