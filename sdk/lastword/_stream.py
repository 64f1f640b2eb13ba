"""A stream of chunks that ends in exactly one outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import httpx
import tenacity

from lastword._call import Call
from lastword._errors import LastwordError
from lastword._stream_state import BeingRead, StreamState
from lastword._transport._guard import SyncGuard
from lastword._transport._httpx import RAISED
from lastword._wire import body_limit, body_of, drain, is_stream, let_go, no_stream, read, send

T = TypeVar("T")


class Stream(StreamState[T]):
    """Iterates the chunks of an answer, and raises where it would otherwise end without being complete.

    ``with`` closes the socket at once when the block is left; leaving a ``for`` loop does too.  ``close`` may be called
    from any thread.  ``outcome`` is None until the stream has ended.
    """

    def __init__(
        self,
        transport: httpx.HTTPTransport,
        base_url: str,
        call: Call,
        build: Callable[[Any], T],
        on_end: Callable[[], None],
        *,
        quiet: bool = False,
    ) -> None:
        self._lock = threading.RLock()
        super().__init__(call, build, on_end, quiet=quiet)
        self._transport = transport
        self._base_url = base_url
        self._guard = cast(SyncGuard, call.guard)
        self._retrying = tenacity.Retrying(sleep=self._guard.sleep, **call.tenacity_options())
        self._body: Iterator[bytes] = iter(())

    def open(self) -> Self:
        """Send the request and wait for the head of the answer, over as many attempts as the policy allows."""
        self._run(lambda: self._retrying(self._open))
        self._handed = time.monotonic()
        return self

    def __iter__(self) -> Iterator[T]:
        mine = True
        try:
            while True:
                try:
                    chunk = self.__next__()
                except StopIteration:
                    return
                except BeingRead:
                    mine = False
                    raise
                yield chunk
        finally:
            if mine and self.outcome is None:
                self.close()

    def __next__(self) -> T:
        if self.outcome is not None:
            raise self._over(StopIteration)
        self._asked()
        try:
            chunk = self._run(self._read if self._call.delivered else self._begin)
        except LastwordError:
            if self._quiet:
                raise StopIteration from None
            raise
        if chunk is None:
            self._end(None)
            raise self._over(StopIteration)
        return self._hand_over(cast(T, chunk))

    def close(self) -> None:
        """End the stream now, from any thread; a thread that waits for it gets ``Cancelled``."""
        with self._lock:
            if self.outcome is None:
                self._closed = True
                self._guard.cancel()
                if not self._busy:  # else the thread inside wakes up and ends the stream
                    self._end(self._closed_error())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be half gone
            self.close()

    def _run(self, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except LastwordError as error:
            self._end(error)
            raise
        except BaseException:  # KeyboardInterrupt and the like: the socket must not outlive it
            self._busy = False
            self.close()
            raise

    def _begin(self) -> T | None:
        return self._retrying(self._first)

    def _first(self) -> T | None:
        if self._response is None:
            self._open()
        return self._read()

    def _open(self) -> None:
        self._reset()
        self._enter()
        try:
            response = send(self._transport, self._base_url, self._call)
            if not is_stream(self._call):
                raise no_stream(self._call, read(self._call, response, limit=body_limit(self._call)))
            self._response = response
            self._body = body_of(response)
        finally:
            self._leave()

    def _read(self) -> T | None:
        """The next chunk; None once the answer is complete."""
        while True:
            chunk = self._take()
            if chunk is not None:
                return chunk
            if self._call.tracker.terminal is not None:
                self._finish(pending=False)
                return None
            data = self._receive()
            if data is None:
                self._finish(pending=self._decoder.pending)
                return None
            self._events = iter(self._decoder.feed(data))

    def _receive(self) -> bytes | None:
        self._before_wait()
        self._enter()
        try:
            return next(self._body, None)
        except RAISED as error:
            self._drop()
            raise self._call.broken(error) from error
        finally:
            self._leave()

    def _finish(self, *, pending: bool) -> None:
        """The terminal event came, or the body ended as its framing says."""
        error = self._call.ended("complete", pending=pending)
        response, self._response = self._response, None
        if response is not None:
            drain(self._call, response, self._body)
        if error is not None:
            raise error

    def _enter(self) -> None:
        """A wait in the transport begins; whoever closes the stream meanwhile leaves its ending to this thread."""
        with self._lock:
            if self._closed:
                raise self._closed_error()
            self._busy = True

    def _leave(self) -> None:
        with self._lock:
            self._busy = False
            if self._closed:
                self._end(self._closed_error())

    def _drop(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            let_go(self._call, response)

    def _end(self, error: LastwordError | None) -> None:
        with self._lock:
            if self._last_word(error):
                self._drop()
