"""The sync client."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import tenacity

from lastword._call import Call
from lastword._classify import make_error
from lastword._codes import Code
from lastword._config import configure
from lastword._deadline import Deadline, Timeouts
from lastword._endpoints import Endpoint, read_answer
from lastword._errors import error_of
from lastword._exit import close_at_exit, disown_in_children
from lastword._outcome import Outcome
from lastword._request import prepare
from lastword._resources import Chat, Completions, Models, WithOutcome
from lastword._retry import RetryPolicy
from lastword._stream import Stream
from lastword._transport._guard import SyncGuard
from lastword._transport._httpx import sync_transport
from lastword._transport._pool import forget_connections
from lastword._wire import body_limit, read, send


class Client:
    """Talks to an OpenAI-compatible server; every call ends in a whole answer or in a ``LastwordError``.

    ``base_url`` and ``api_key`` default to LASTWORD_BASE_URL / OPENAI_BASE_URL and LASTWORD_API_KEY / OPENAI_API_KEY.
    ``profile`` names a server known to end its answers differently (see ``lastword.PROFILES``); none is ever guessed.
    ``ssl_context`` replaces the default verification of certificates.  A client may be shared between threads.

    Raises ``ValueError`` for settings that cannot work.
    """

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
        self._transport = sync_transport(self._config.base_url, ssl_context)
        self._lock = threading.RLock()
        self._running: set[SyncGuard] = set()
        self._closed = False
        self.chat = Chat(self._request, self._stream)
        self.completions = Completions(self._request, self._stream)
        self.models = Models(self._request, self._stream)
        close_at_exit(self)
        disown_in_children(self)

    @property
    def base_url(self) -> str:
        """Where requests go."""
        return self._config.base_url

    @property
    def with_outcome(self) -> WithOutcome:
        """The same calls, returning ``(value, Outcome)`` instead of raising; ``value`` is None if there is none.

        With ``stream=True`` a stream that was opened comes with no outcome yet: its iteration ends without raising,
        and ``stream.outcome`` then says how.
        """
        return WithOutcome(self._request, self._stream)

    def close(self) -> None:
        """Close every connection; each call still waiting, in any thread, raises ``Cancelled``."""
        self._cancel_all()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        with suppress(Exception):  # half made, or the interpreter is half gone
            self.close()

    def _cancel_all(self) -> None:
        with self._lock:
            self._closed = True
            running = list(self._running)
        for guard in running:
            guard.cancel()

    def _disown(self) -> None:
        """In a forked child: calls and connections are the parent's, and neither of the two may disturb the other."""
        self._lock = threading.RLock()
        for guard in self._running:
            guard.disown()
        self._running = set()
        forget_connections(self._transport)

    def _call(self, endpoint: Endpoint, params: Mapping[str, object]) -> tuple[Call, SyncGuard]:
        config = self._config
        request = prepare(endpoint.method, endpoint.path, params, headers=config.headers, timeouts=config.timeouts)
        deadline = Deadline(request.timeouts, stream=request.stream, now=time.monotonic())
        guard = SyncGuard(deadline)
        with self._lock:
            if self._closed:
                raise error_of(
                    make_error(Code.CANCELLED, "the client is closed; nothing was sent", request_id=request.request_id)
                )
            self._running.add(guard)
        return Call(request, deadline, guard, config.retry, config.budget, config.profile), guard

    def _finished(self, guard: SyncGuard) -> None:
        with self._lock:
            self._running.discard(guard)

    def _request(self, endpoint: Endpoint, params: Mapping[str, object]) -> tuple[Any, Outcome]:
        build = endpoint.answer()  # first: what fails before the call leaves nothing to tidy up
        call, guard = self._call(endpoint, params)

        def attempt() -> Any:
            response = send(self._transport, self._config.base_url, call)
            return read_answer(endpoint, call, read(call, response, limit=body_limit(call)), build)

        try:
            result = tenacity.Retrying(sleep=guard.sleep, **call.tenacity_options())(attempt)
        finally:
            self._finished(guard)
        call.note(None)
        return result, call.outcome(None)

    def _stream(self, endpoint: Endpoint, params: Mapping[str, object], *, quiet: bool = False) -> Stream[Any]:
        build = endpoint.chunk()
        call, guard = self._call(endpoint, params)
        stream: Stream[Any] = Stream(
            self._transport,
            self._config.base_url,
            call,
            build,
            lambda: self._finished(guard),
            quiet=quiet,
        )
        return stream.open()
