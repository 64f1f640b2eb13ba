"""The async stream: as ``_stream``, with ``await``."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import anyio
import httpx
import tenacity

from lastword._call import Call
from lastword._errors import LastwordError
from lastword._stream_state import StreamState
from lastword._transport._guard import AsyncGuard
from lastword._transport._httpx import RAISED
from lastword._wire import (
    async_body_of,
    async_drain,
    async_let_go,
    async_read,
    async_send,
    body_limit,
    is_stream,
    no_stream,
)

T = TypeVar("T")


class AsyncStream(StreamState[T]):
    """Iterates the chunks of an answer, and raises where it would otherwise end without being complete.

    ``async with`` closes the socket at once when the block is left; leaving an ``async for`` loop or cancelling the task
    does too.  ``aclose`` may be called from another task.  ``outcome`` is None until the stream has ended.
    """

    def __init__(
        self,
        transport: httpx.AsyncHTTPTransport,
        base_url: str,
        call: Call,
        build: Callable[[Any], T],
        on_end: Callable[[], None],
        *,
        orphans: list[httpx.Response],
        quiet: bool = False,
    ) -> None:
        super().__init__(call, build, on_end, quiet=quiet)
        self._transport = transport
        self._base_url = base_url
        self._orphans = orphans
        self._guard = cast(AsyncGuard, call.guard)
        self._retrying = tenacity.AsyncRetrying(sleep=self._guard.sleep, **call.tenacity_options())
        self._body: AsyncIterator[bytes] | None = None

    async def open(self) -> Self:
        """Send the request and wait for the head of the answer, over as many attempts as the policy allows."""
        await self._run(lambda: self._retrying(self._open))
        self._handed = time.monotonic()
        return self

    def __aiter__(self) -> AsyncIterator[T]:
        return _Iteration(self)

    async def __anext__(self) -> T:
        if self.outcome is not None:
            raise self._over(StopAsyncIteration)
        self._asked()
        try:
            chunk = await self._run(self._read if self._call.delivered else self._begin)
        except LastwordError:
            if self._quiet:
                raise StopAsyncIteration from None
            raise
        if chunk is None:
            await self._end(None)
            raise self._over(StopAsyncIteration)
        return self._hand_over(cast(T, chunk))

    async def aclose(self) -> None:
        """End the stream now, from any task; a task that waits for it gets ``Cancelled``."""
        if self.outcome is None:
            self._closed = True
            self._guard.cancel()
            if not self._busy:  # else the task inside wakes up and ends the stream
                await self._end(self._closed_error())

    close = aclose

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()

    def __del__(self) -> None:
        if hasattr(self, "_body"):
            self.abandon()

    def abandon(self) -> None:
        """End the stream where nothing can be awaited: the socket is shut down at once, the client tidies up later."""
        if self.outcome is None:
            self._guard.abandon()
            self._last_word(self._closed_error())
            if self._response is not None:
                self._orphans.append(self._response)
                self._response = None

    async def _run(self, step: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await step()
        except LastwordError as error:
            await self._end(error)
            raise
        except BaseException:  # a cancelled task, above all: the socket must not outlive it
            self._busy = False
            with anyio.CancelScope(shield=True):
                await self.aclose()
            raise

    async def _begin(self) -> T | None:
        return cast(T | None, await self._retrying(self._first))

    async def _first(self) -> T | None:
        if self._response is None:
            await self._open()
        return await self._read()

    async def _open(self) -> None:
        self._reset()
        self._enter()
        try:
            response = await async_send(self._transport, self._base_url, self._call)
            if not is_stream(self._call):
                raise no_stream(self._call, await async_read(self._call, response, limit=body_limit(self._call)))
            self._response = response
            self._body = async_body_of(response)
        finally:
            await self._leave()

    async def _read(self) -> T | None:
        """The next chunk; None once the answer is complete."""
        while True:
            chunk = self._take()
            if chunk is not None:
                return chunk
            if self._call.tracker.terminal is not None:
                await self._finish(pending=False)
                return None
            data = await self._receive()
            if data is None:
                await self._finish(pending=self._decoder.pending)
                return None
            self._events = iter(self._decoder.feed(data))

    async def _receive(self) -> bytes | None:
        assert self._body is not None
        self._before_wait()
        self._enter()
        try:
            return await anext(self._body, None)
        except RAISED as error:
            await self._drop()
            raise self._call.broken(error) from error
        finally:
            await self._leave()

    async def _finish(self, *, pending: bool) -> None:
        """The terminal event came, or the body ended as its framing says."""
        error = self._call.ended("complete", pending=pending)
        response, self._response = self._response, None
        if response is not None and self._body is not None:
            await async_drain(self._call, response, self._body)
        if error is not None:
            raise error

    def _enter(self) -> None:
        if self._closed:
            raise self._closed_error()
        self._busy = True

    async def _leave(self) -> None:
        self._busy = False
        if self._closed:
            await self._end(self._closed_error())

    async def _drop(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            await async_let_go(self._call, response)

    async def _end(self, error: LastwordError | None) -> None:
        if self._last_word(error):
            await self._drop()


class _Iteration(AsyncIterator[T]):
    """One ``async for``: an object and no async generator, since leaving the loop must close the socket at once, and a
    generator's finaliser would need a task of a loop that may be gone."""

    def __init__(self, stream: AsyncStream[T]) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        return await self._stream.__anext__()  # a coroutine, so that this object outlives the wait

    def __del__(self) -> None:
        self._stream.abandon()
