"""A scripted server, for tests of programs that talk to an LLM server.

Mocks of an HTTP library cannot cut a TCP stream, reset a connection or notice when a client leaves. This server can: it
listens on a real socket, plays one scripted exchange for each request, byte for byte, and keeps its own log::

    import pytest

    from lastword import Client, StreamIncomplete
    from lastword.testing import ScriptedServer, stream

    def test_a_cut_answer_is_noticed():
        with ScriptedServer([stream("Hel", "lo", end="truncate")]) as server:
            with Client(base_url=server.base_url, api_key="k") as client, pytest.raises(StreamIncomplete):
                for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
                    ...

``stream``, ``answer`` and ``failure`` write the common exchanges. An exchange is a plain mapping, so any other can be
written by hand, in the format of the contract's vectors; every field can be left out:

``status``   the HTTP status; without one there is no response head, and the steps are written raw
``headers``  name -> value, a list for a repeated one, None for none of the default one
``framing``  ``chunked`` (default), ``content-length`` or ``close``
``before``   steps before the head: delays and waits
``steps``    one after the other, each one of: ``{"data": JSON or text, "event": name}`` (a server-sent event),
             ``{"json": JSON}``, ``{"text": "..."}``, ``{"base64": "..."}``, ``{"delay_ms": 100}``,
             ``{"repeat": {"text": "...", "times": 3}}``, ``{"await": "disconnect", "within_ms": 1000}`` (the client must
             leave in that time) and, as the last one, ``{"end": how}``
``then``     ``close``: close the connection after the whole answer
``request``  what the request must be: ``method``, ``path``, ``headers``, ``body``

``how`` is ``complete`` (default), ``truncate`` (FIN before the framing is satisfied), ``reset`` (RST) or ``stall`` (silence
until the client leaves). What cannot be played is refused when the server is made.

The server runs in a thread of its own, so the same ``with`` block serves sync and async tests. Nothing of it is left when
the block ends.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import TYPE_CHECKING, Final, Literal, Self

from lastword._scripted._player import Connection, Logged
from lastword._scripted._request import Received, differences
from lastword._scripted._script import Exchange, parse_exchange
from lastword._scripted._shapes import answer, chunk, failure, stream

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

__all__ = ["Received", "ScriptedServer", "answer", "chunk", "failure", "stream"]

_GRACE: Final = 2.0  # s a script may still take to be played to its end once the block is left
_NO_EXCHANGE_LEFT: Final = failure(
    400, "invalid_request_error", "the script has no exchange left", headers={"x-should-retry": "false"}
)


class ScriptedServer:
    """Plays ``exchanges`` in order, one a request, on a free port of the loopback interface.

    ``segmentation``  how the body is cut: ``event`` (one write a step), ``whole`` (as few writes as can be), or a
                      number of bytes such as ``"1"``
    ``tls``           a server-side ``ssl.SSLContext``
    ``accepting``     ``yes``; ``silent``: connections are accepted and nothing is ever read or sent (a TLS handshake
                      that hangs, silence before the headers); ``no``: the backlog is full and connecting hangs
    ``strict``        leaving the block raises ``AssertionError`` for exchanges that were never asked for, requests
                      beyond the script, steps left unplayed and disconnects that did not come in time
    ``keep_log``      note in ``log`` what happens on the wire, and when
    """

    def __init__(
        self,
        exchanges: Sequence[Mapping[str, object]] = (),
        *,
        segmentation: str = "event",
        tls: ssl.SSLContext | None = None,
        accepting: Literal["yes", "silent", "no"] = "yes",
        strict: bool = True,
        keep_log: bool = False,
    ) -> None:
        self.segmentation = segmentation
        self.log: list[Logged] | None = [] if keep_log else None
        self.requests: list[Received] = []
        self.connections = 0
        self._exchanges: list[Exchange] = [parse_exchange(each) for each in exchanges]
        self._unasked = list(self._exchanges)
        self._extra: list[Received] = []
        self._tls, self._accepting, self._strict = tls, accepting, strict
        self._open: set[Connection] = set()
        self._ever: list[Connection] = []
        self._idle_sockets: list[socket.socket] = []
        self._news = threading.Condition()
        self._ready = threading.Event()

    # -- the block

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=0 if self._accepting == "no" else 128)
        self.host, self.port = self._listener.getsockname()[:2]
        if self._accepting == "no":
            self._fill_backlog()
        elif self._accepting == "yes":
            self._thread = threading.Thread(target=self._run, name=f"scripted-server:{self.port}", daemon=True)
            self._thread.start()
            self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        problems = self.problems
        if not self._strict or not problems:
            return
        report = "scripted server: " + "; ".join(problems)
        if error is None:
            raise AssertionError(report)
        error.add_note(report)

    def close(self) -> None:
        """Let the running scripts end (for at most their own waits), close every socket and join the thread."""
        if self._accepting == "yes":
            self._loop.call_soon_threadsafe(self.closing.set)
            self._thread.join()
        for each in self._idle_sockets:
            each.close()
        self._listener.close()

    # -- what a test asks

    @property
    def origin(self) -> str:
        """``http://127.0.0.1:port``, or ``https`` with TLS."""
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        return f"{self.origin}/v1"

    @property
    def open_connections(self) -> int:
        """Connections that neither side has closed yet."""
        return len(self._open)

    @property
    def problems(self) -> list[str]:
        """What did not go by the script so far, one sentence each."""
        problems = (
            [f"{len(self._unasked)} of {len(self._exchanges)} exchanges were never asked for"] if self._unasked else []
        )
        problems += [
            f"a request beyond the script: {r.method} {r.path} on connection {r.connection}" for r in self._extra
        ]
        for number, request in enumerate(self.requests, 1):
            problems += [f"request {number}: {problem}" for problem in request.problems]
            if not request.answered and not request.problems:
                problems.append(f"request {number}: its script was not played to the end")
        return problems

    def wait_for(self, condition: Callable[[], bool], *, timeout: float = 5.0) -> bool:
        """Block until ``condition()`` holds (looked at whenever something happens here); False after ``timeout`` s.

        In async code call it through ``anyio.to_thread.run_sync``.
        """
        until = time.monotonic() + timeout
        with self._news:
            while not condition():
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._news.wait(min(left, 0.05))
        return True

    def wait_disconnected(self, request: int = -1, *, timeout: float = 5.0) -> float | None:
        """Wait until the client of that request has left while it was answered; the monotonic time, or None."""
        self.wait_for(lambda: self._gone(request), timeout=timeout)
        return self.requests[request].disconnected_at if self.requests else None

    def _gone(self, request: int) -> bool:
        return bool(self.requests) and self.requests[request].disconnected_at is not None

    # -- the thread

    def _run(self) -> None:
        # A plain selector loop whatever policy the tests have set: uvloop hides the sockets' options.
        self._loop = asyncio.SelectorEventLoop()
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        self.closing = asyncio.Event()
        server = await self._loop.create_server(lambda: Connection(self), sock=self._listener, ssl=self._tls)
        self._ready.set()
        await self.closing.wait()
        # Nothing more is accepted, but what was becomes a connection: a server that is closed leaves its socket open.
        self._loop.remove_reader(self._listener)
        await _some_rounds()
        server.close()
        await self._finish()
        for connection in list(self._open):
            connection.transport.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _some_rounds()  # a transport closes its socket in one of the next

    async def _finish(self) -> None:
        """Let answers that are being played come to their end: an awaited disconnect may still be due."""
        until = self._loop.time() + _GRACE + max((each.longest_wait for each in self._exchanges), default=0.0)
        # One wait for all of them.
        while any(each.busy for each in self._ever) and self._loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    # -- the connections' side (lastword._scripted._player.Script)

    def take(self, request: Received) -> Exchange:
        """Give the next exchange to a request."""
        self.requests.append(request)
        self.changed()
        if self._unasked:
            exchange = self._unasked.pop(0)
            request.differences += differences(exchange.request, request, self.requests[0])
            return exchange
        self._extra.append(request)
        return parse_exchange(_NO_EXCHANGE_LEFT)

    def opened(self, connection: Connection) -> int:
        """Count a connection; 1 for the first."""
        self.connections += 1
        self._open.add(connection)
        self._ever.append(connection)
        self.changed()
        return self.connections

    def changed(self, connection: Connection | None = None) -> None:
        """Wake whoever waits; a connection is given when it is over."""
        if connection is not None:
            self._open.discard(connection)
        with self._news:
            self._news.notify_all()

    def _fill_backlog(self) -> None:
        # A backlog of 0 still holds one finished handshake on Linux; the SYNs after that are dropped.
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex((self.host, self.port))
            self._idle_sockets.append(filler)
        time.sleep(0.05)


async def _some_rounds() -> None:
    for _ in range(4):
        await asyncio.sleep(0)
