"""httpcore's pool, made safe to interrupt and to cancel.

A finaliser and a signal handler run in whatever thread they interrupt, in the middle of anything.  If they close a stream or
the client while that thread is inside the pool, then httpcore's own lock, which a thread cannot take twice, would never be
free again, and its lists would change under the one who goes through them.

A cancelled asyncio task is interrupted at whatever ``await`` it has reached, and anyio's shields, with which httpcore protects
its tidying up, do not hold off a plain ``Task.cancel``.
"""

from __future__ import annotations

import asyncio
import threading
import types
from collections.abc import Coroutine, Generator
from contextlib import suppress
from functools import partial
from typing import Any

import httpx

from lastword._transport._guard import AsyncGuard


def make_interruptible(transport: httpx.HTTPTransport) -> None:
    """Let streams and the client be closed from finalisers and signal handlers."""
    _Interruptible(transport._pool)


def spoil_if_more_came(response: httpx.Response) -> None:
    """Keep the connection from being used again if the server sent more than its answer: what is left over, perhaps a whole
    response, would be taken for the answer to the next request."""
    stream: Any = response.stream
    with suppress(AttributeError):  # httpcore's own, and a release that renames them must not fail every call
        if stream._httpcore_stream._stream._connection._h11_state.trailing_data[0]:
            response.extensions["network_stream"].spoiled = True


def forget_connections(transport: httpx.HTTPTransport) -> None:
    """In a forked child: close this process's copies of the parent's connections, which the server does not notice."""
    pool: Any = transport._pool
    make_interruptible(transport)  # anew: another thread of the parent may have been inside
    pool._requests = [request for request in pool._requests if not request.is_queued()]
    connections, pool._connections = pool._connections, []
    for connection in connections:
        connection.close()


def drop_connections(transport: httpx.AsyncHTTPTransport) -> None:
    """Forget connections whose event loop has ended: it closed their sockets or never will, and no ``await`` reaches them."""
    pool: Any = transport._pool
    pool._connections, pool._requests = [], []


@types.coroutine
def to_the_end(work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
    """Await ``work``, which only yields to the loop and waits for nobody; a cancellation comes after it."""
    cancelled: asyncio.CancelledError | None = None
    step = partial(work.send, None)
    while True:
        try:
            awaited = step()
        except StopIteration:
            break
        except Exception:
            if cancelled is None:
                raise
            break
        try:
            step = partial(work.send, (yield awaited))
        except asyncio.CancelledError as error:
            cancelled, step = error, partial(work.send, None)
        except BaseException as error:  # noqa: BLE001 (it is the work's to deal with)
            step = partial(work.throw, error)
    if cancelled is not None:
        raise cancelled


async def close_unused(transport: httpx.AsyncHTTPTransport, guard: AsyncGuard) -> None:
    """Close the connection that a cancelled call opened and had no time to use: httpcore would keep it for ever."""
    stream, guard.unused = guard.unused, None
    if stream is not None:
        pool: Any = transport._pool
        pool._connections = [each for each in pool._connections if _network_stream(each) is not stream]
        await stream.aclose()


def _network_stream(connection: Any) -> Any:
    return getattr(getattr(connection, "_connection", None), "_network_stream", None)


class _Interruptible:
    def __init__(self, pool: Any) -> None:
        self._pool = pool
        kind = type(pool)
        self._assign, self._close = kind._assign_requests_to_connections.__get__(pool), kind.close.__get__(pool)
        self._busy = False
        self._again = False
        self._closing = False
        # C's lock, unlike httpcore's, can also not be left locked by a KeyboardInterrupt on the way into it.
        pool._optional_thread_lock = threading.RLock()
        pool._assign_requests_to_connections = self.assign
        pool.close = self.close

    def assign(self) -> list[Any]:
        """Which connections to close; whoever interrupts this leaves it to the interrupted one to look again."""
        if self._busy:
            self._again = True
            return []
        closing: list[Any] = []
        try:
            self._busy = True
            while True:
                self._again = False
                closing += self._assign()
                if self._closing:
                    closing += self._pool._connections
                    self._pool._connections, self._closing = [], False
                if not self._again:
                    return closing
        finally:
            self._busy = False

    def close(self) -> None:
        """Close every connection."""
        with self._pool._optional_thread_lock:
            self._closing = self._busy
        if not self._closing:
            self._close()
