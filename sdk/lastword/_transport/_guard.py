"""A call's grip on its socket: how long the next wait may last, and how to end it from outside.

HTTP libraries capture a read timeout once for a whole body and offer nothing to close before the headers are there.  So
the guard itself travels as the request's "timeout" down to our network backend, which asks it before every wait.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import anyio

from lastword._deadline import Deadline, Timer

T = TypeVar("T")

DRAIN_SECONDS = 0.1
"""How long the rest of a body may take after its terminal event, so that the connection can be used again (STR-9)."""
MAX_DRAIN = 64 * 1024
"""And how long it may be, in bytes."""


class Stopped(Exception):
    """The wait is not allowed: a timer has fired or the call was cancelled; the guard knows which."""


class Guard:
    """What sync and async calls share: the deadline, what fired, whether somebody cancelled."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.cancelled = False
        self.fired: Timer | None = None
        self._drain_until: float | None = None

    def attempt(self) -> None:
        """A new attempt begins."""
        self.fired = None
        self._drain_until = None
        self.deadline.attempt(time.monotonic())

    def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """The outcome is fixed; what is still read only explains it or saves the connection, and no timer fires."""
        now = time.monotonic()
        self._drain_until = now + min(seconds, max(0.0, self.deadline.left(now)))

    def wait_seconds(self) -> float | None:
        """How long the next wait may last; None for ever.  Raises ``Stopped`` if it may not begin."""
        if self.cancelled and self._drain_until is None:
            raise Stopped
        timer, at = self.deadline.next() if self._drain_until is None else (None, self._drain_until)
        left = at - time.monotonic()
        if left <= 0:
            self.fired = timer
            raise Stopped
        return None if left == float("inf") else left

    def expire(self) -> None:
        """The wait that ``wait_seconds`` allowed has passed."""
        if self._drain_until is None:
            self.fired = self.deadline.next()[0]

    def release(self) -> None:
        """The call is over and its connection belongs to the pool again."""
        raise NotImplementedError

    def connecting(self) -> None:
        """TCP or TLS is being set up."""
        self.deadline.connecting(time.monotonic())


class SyncGuard(Guard):
    """The guard of a blocking call; ``cancel`` may be called from any thread.

    Also from a signal handler or a finaliser, which interrupt a thread in the middle of anything: hence the lock that its
    own thread may take again, and queues of the one kind that may be filled while the same thread takes from them.
    """

    def __init__(self, deadline: Deadline) -> None:
        super().__init__(deadline)
        self._lock = threading.RLock()
        self._socket: socket.socket | None = None
        self._woken: SimpleQueue[None] = SimpleQueue()
        self._awaited: SimpleQueue[Any] | None = None

    def hold(self, sock: socket.socket) -> float | None:
        """``sock`` is about to be waited on; returns and raises as ``wait_seconds``."""
        self._socket = sock  # before the check: whoever cancels now either sees the socket or is seen
        return self.wait_seconds()

    def release(self) -> None:
        """The call is over and its connection belongs to the pool again."""
        with self._lock:
            self._socket = None

    def cancel(self) -> None:
        """End the call: wake whoever waits, and shut the socket down so that the server sees it at once."""
        with self._lock:
            self.cancelled = True
            self._woken.put(None)
            if self._awaited is not None:
                self._awaited.put(None)
            if self._socket is not None:
                with suppress(OSError):  # not connected, or closed already
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # past SSLSocket's, which races a reader

    def wait_for(self, answers: SimpleQueue[T]) -> T:
        """Wait for the first of ``answers``.  Raises ``Stopped`` if the timers or a cancellation came first."""
        self._awaited = answers
        try:
            answer = answers.get(timeout=self.wait_seconds())
        except Empty:
            self.expire()
            raise Stopped from None
        finally:
            self._awaited = None
        if self.cancelled:
            raise Stopped
        return answer

    def sleep(self, seconds: float) -> None:
        """Wait between attempts; a cancellation ends it."""
        with suppress(Empty):
            self._woken.get(timeout=seconds)

    def disown(self) -> None:
        """In a forked child: the call and its socket are the parent's."""
        self._lock = threading.RLock()  # another thread of the parent may have held it
        self.cancelled = True
        self._socket = None


class AsyncGuard(Guard):
    """The guard of an async call; ``cancel`` belongs to the event loop's thread."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__(deadline)
        self.unused: Any = None  # a connection that was opened for this call, until something is sent
        self._scope: anyio.CancelScope | None = None
        self._raw_socket: Any = None

    def scope(self) -> anyio.CancelScope:
        """A scope for one wait; it ends when the next timer fires or somebody cancels."""
        seconds = self.wait_seconds()
        deadline = float("inf") if seconds is None else anyio.current_time() + seconds
        self._scope = anyio.CancelScope(deadline=deadline)
        return self._scope

    def after(self, scope: anyio.CancelScope) -> None:
        """Raises ``Stopped`` if the wait in ``scope`` was ended from outside."""
        self._scope = None
        if scope.cancelled_caught:
            if not self.cancelled:
                self.expire()
            raise Stopped

    def hold(self, raw_socket: Any) -> None:
        """The socket to shut if the call is abandoned where nothing can be awaited."""
        self._raw_socket = raw_socket

    def release(self) -> None:
        """The call is over and its connection belongs to the pool again."""
        self._raw_socket = None

    def cancel(self) -> None:
        """End the call: whoever waits is woken."""
        self.cancelled = True
        if self._scope is not None:
            self._scope.cancel()

    def abandon(self) -> None:
        """End the call from a finaliser: no await, no task, only the socket, which the server sees closing."""
        self.cancelled = True
        if self._raw_socket is not None:
            with suppress(OSError):
                self._raw_socket.shutdown(socket.SHUT_RDWR)

    def disown(self) -> None:
        """In a forked child: the call and its socket are the parent's."""
        self.cancelled = True
        self._raw_socket = None

    async def sleep(self, seconds: float) -> None:
        """Wait between attempts; a cancellation ends it."""
        if not self.cancelled:
            with anyio.CancelScope() as self._scope:
                await anyio.sleep(seconds)
            self._scope = None
