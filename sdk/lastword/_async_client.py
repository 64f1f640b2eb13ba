"""The async client: as ``_client``, with ``await``."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import anyio
import httpx
import tenacity

from lastword._async_resources import AsyncChat, AsyncCompletions, AsyncModels, AsyncWithOutcome
from lastword._async_stream import AsyncStream
from lastword._call import Call
from lastword._classify import make_error
from lastword._codes import Code
from lastword._config import configure
from lastword._deadline import Deadline, Timeouts
from lastword._endpoints import Endpoint, read_answer
from lastword._errors import error_of
from lastword._exit import disown_in_children
from lastword._outcome import Outcome
from lastword._request import prepare
from lastword._retry import RetryPolicy
from lastword._transport._guard import AsyncGuard
from lastword._transport._httpx import async_transport
from lastword._transport._pool import drop_connections, to_the_end
from lastword._wire import async_read, async_send, body_limit


class AsyncClient:
    """As ``Client``, with ``await`` and ``async for``; belongs to one event loop, and to the next once that has ended."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        profile: str | None = None,
        default_headers: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._config = configure(
            base_url=base_url,
            api_key=api_key,
            timeouts=timeouts,
            retry=retry,
            profile=profile,
            default_headers=default_headers,
            ssl_context=ssl_context,
        )
        self._transport = async_transport(self._config.base_url, ssl_context)
        self._running: set[AsyncGuard] = set()
        self._orphans: list[httpx.Response] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self.chat = AsyncChat(self._request, self._stream)
        self.completions = AsyncCompletions(self._request, self._stream)
        self.models = AsyncModels(self._request, self._stream)
        disown_in_children(self)

    @property
    def base_url(self) -> str:
        """Where requests go."""
        return self._config.base_url

    @property
    def with_outcome(self) -> AsyncWithOutcome:
        """As ``Client.with_outcome``."""
        return AsyncWithOutcome(self._request, self._stream)

    async def aclose(self) -> None:
        """Close every connection; each call still waiting, in any task, raises ``Cancelled``."""
        self._cancel_all()
        await self._tidy()
        await self._transport.aclose()

    close = aclose

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()

    def _cancel_all(self) -> None:
        self._closed = True
        for guard in list(self._running):
            guard.cancel()

    def _disown(self) -> None:
        """In a forked child: the calls are the parent's."""
        for guard in self._running:
            guard.disown()

    async def _tidy(self) -> None:
        """Give back what streams abandoned without an ``await`` held; their sockets are shut already."""
        before = self._loop
        with suppress(RuntimeError):  # another kind of event loop
            self._loop = asyncio.get_running_loop()
        if before is not None and before.is_closed() and before is not self._loop:
            self._orphans.clear()
            drop_connections(self._transport)
        while self._orphans:
            await to_the_end(self._orphans.pop().aclose())

    async def _call(self, endpoint: Endpoint, params: Mapping[str, object]) -> tuple[Call, AsyncGuard]:
        await self._tidy()
        config = self._config
        request = prepare(endpoint.method, endpoint.path, params, headers=config.headers, timeouts=config.timeouts)
        deadline = Deadline(request.timeouts, stream=request.stream, now=time.monotonic())
        if self._closed:
            raise error_of(
                make_error(Code.CANCELLED, "the client is closed; nothing was sent", request_id=request.request_id)
            )
        guard = AsyncGuard(deadline)
        self._running.add(guard)
        return Call(request, deadline, guard, config.retry, config.budget, config.profile), guard

    async def _request(self, endpoint: Endpoint, params: Mapping[str, object]) -> tuple[Any, Outcome]:
        build = endpoint.async_answer()  # first: what fails before the call leaves nothing to tidy up
        call, guard = await self._call(endpoint, params)

        async def attempt() -> Any:
            response = await async_send(self._transport, self._config.base_url, call)
            return read_answer(endpoint, call, await async_read(call, response, limit=body_limit(call)), build)

        try:
            result: Any = await tenacity.AsyncRetrying(sleep=guard.sleep, **call.tenacity_options())(attempt)
        finally:
            self._running.discard(guard)
        call.note(None)
        return result, call.outcome(None)

    async def _stream(
        self, endpoint: Endpoint, params: Mapping[str, object], *, quiet: bool = False
    ) -> AsyncStream[Any]:
        build = endpoint.chunk()
        call, guard = await self._call(endpoint, params)
        stream: AsyncStream[Any] = AsyncStream(
            self._transport,
            self._config.base_url,
            call,
            build,
            lambda: self._running.discard(guard),
            orphans=self._orphans,
            quiet=quiet,
        )
        return await stream.open()
