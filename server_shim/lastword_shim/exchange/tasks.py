"""The tasks of one exchange: small ones that end with it, and the application's own, which may not want to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from lastword._classify import ErrorInfo
from lastword._codes import Code
from lastword_shim.protocol.private import Secrets
from lastword_shim.protocol.redact import loggable, loggable_traceback

_T = TypeVar("_T")

STOP_PATIENCE: Final = 1.0
"""Seconds that an application gets to stop once it is told that the client has left, and again once it is cancelled."""
_log: Final = logging.getLogger("lastword_shim")


class SideTasks:
    """Tasks beside the application's; ``on_failure`` is called where one fails, for then the server's own receive or
    send has failed."""

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._on_failure = on_failure

    def start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Run ``work`` beside the rest."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def cancel(self) -> None:
        """The exchange is over."""
        for task in self._tasks:
            task.cancel()

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._on_failure()


async def stop(application: asyncio.Task[None], hang_up: asyncio.Event, request_id: str) -> None:
    """Make it stop.  The disconnect comes first: a cancelled handler may leave at work what it started."""
    hang_up.set()
    await asyncio.wait({application}, timeout=STOP_PATIENCE)
    if not application.done():
        application.cancel()
        await asyncio.wait({application}, timeout=STOP_PATIENCE)
    if not application.done():
        _log.error("request_id=%s the application does not stop", request_id)
    elif not application.cancelled():
        application.exception()  # taken note of: the request has been answered


async def let_go(
    application: asyncio.Task[None],
    hang_up: asyncio.Event,
    request_id: str,
    *,
    secrets: Secrets,
    explain: Callable[[BaseException], ErrorInfo | None],
) -> None:
    """Wait for what it does after its answer, which is its own affair; if it asks, the exchange is over (ASGI).

    ``explain`` knows of the engine's failures: one that comes after the answer was whole is nobody's loss.
    """
    await asyncio.wait({application}, timeout=STOP_PATIENCE)
    hang_up.set()
    await asyncio.wait({application})
    problem = None if application.cancelled() else application.exception()
    known = None if problem is None else explain(problem)
    if known is not None and known.code != Code.INTERNAL_SERVER_ERROR:
        _log.info("request_id=%s after its answer: %s", request_id, loggable(str(problem), secrets))
    elif problem is not None:
        what, where = type(problem).__name__, loggable_traceback(problem, secrets)
        _log.error("request_id=%s the application raised %s after its answer\n%s", request_id, what, where)
