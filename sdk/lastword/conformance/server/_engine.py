"""The scripted engine behind the server under test: one address for the whole run, another script for each case.

Which case a request belongs to is told by there being only one: cases are played one after the other. A gateway that makes
requests of its own (LiteLLM's proxy) passes no header of the client's on, so nothing but that can be relied on. Where
``x-conformance-case`` does come through, as with a plain relay, it is a check: a request that still bears the name of a
case that is over is a stray, and is turned away.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Self

from lastword._scripted._player import Connection, Logged
from lastword._scripted._request import Received, differences
from lastword._scripted._script import Exchange, parse_exchange
from lastword._scripted._shapes import answer
from lastword.conformance._results import ConformanceError

Then = Literal["refuses", "repeats", "answers"]
"""What requests beyond the script get: a refusal, the last exchange again, a whole answer."""

NAME: Final = "scripted"
"""Who owns its model."""
_MODELS: Final[Mapping[str, Any]] = {
    "object": "list",
    "data": [{"id": "m", "object": "model", "created": 1767225600, "owned_by": NAME}],
}


def _plain(status: int, document: object) -> Exchange:
    return parse_exchange({"status": status, "framing": "content-length", "steps": [{"json": document}]})


_BETWEEN_CASES: Final = _plain(200, _MODELS)
_STRAY: Final = _plain(400, {"error": {"message": "this case is over", "type": "invalid_request_error", "code": None}})
_WHOLE: Final = parse_exchange(answer("Hello"))
_UNASKED: Final = _plain(
    400, {"error": {"message": "the script has no exchange left", "type": "invalid_request_error", "code": None}}
)


class Engine:
    """Answers what the server under test asks, as the case at hand says. Its thread ends with the ``with`` block."""

    segmentation = "event"

    def __init__(self, port: int = 0) -> None:
        """``port`` 0 takes a free one."""
        self.host, self.port = "127.0.0.1", port
        self.requests: list[Received] = []
        self.problems: list[str] = []
        self.most_at_work = 0
        self.case: str | None = None
        self.log: list[Logged] | None = []
        self._script: list[Exchange] = []
        self._then: Then = "refuses"
        self._asked = 0
        self._open: set[Connection] = set()
        self._listener: socket.socket | None = None
        self._held: socket.socket | None = None  # bound and not listening, while connections are to be refused
        self._server: asyncio.Server | None = None

    # -- the block

    def __enter__(self) -> Self:
        try:
            self._listener = socket.create_server((self.host, self.port), backlog=128)
        except OSError as error:
            raise ConformanceError(
                f"--upstream-port {self.port}: {error.strerror}: take another, or 0 for a free one"
            ) from error
        self.port = self._listener.getsockname()[1]
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._run, name=f"scripted-engine:{self.port}", daemon=True)
        self._thread.start()
        self._in_loop(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        self._in_loop(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{self.host}:{self.port}"

    # -- what a case asks for

    def begin(
        self, case: str, exchanges: Sequence[Mapping[str, Any]], *, listening: bool = True, then: Then = "refuses"
    ) -> None:
        """Play ``exchanges`` from now on, in order, and ``then`` for requests beyond them."""
        self.requests, self.problems, self.log, self._asked, self.most_at_work = [], [], [], 0, 0
        self._script, self._then = [parse_exchange(each) for each in exchanges], then
        self.closing.clear()
        self.case = case
        if not listening:
            self._in_loop(self._deafen)

    def finish(self) -> None:
        """The case is over: whatever is still being played is cut off."""
        self.case = None
        self._in_loop(self._cut)
        if self._listener is None:
            self._in_loop(self._listen)

    def hurry(self) -> None:
        """End the silence that is being played."""
        self._loop.call_soon_threadsafe(self.closing.set)

    @property
    def at_work(self) -> int:
        """How many requests are being answered."""
        return sum(connection.busy for connection in list(self._open))

    @property
    def left(self) -> bool:
        """Whether the server has left while a request of its own was answered."""
        return any(request.disconnected_at is not None for request in self.requests)

    # -- the thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self.closing = asyncio.Event()
        self._loop.run_forever()

    def _in_loop(self, work: Callable[[], Any]) -> None:
        async def run() -> None:
            await work()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _listen(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None
        if self._listener is None:
            self._listener = socket.create_server((self.host, self.port), backlog=128)
        self._server = await self._loop.create_server(lambda: Connection(self), sock=self._listener)

    async def _deafen(self) -> None:
        """Refuse connections; the port stays ours."""
        await self._end()
        self._listener, self._held = None, socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind((self.host, self.port))

    async def _cut(self, *, idle_too: bool = False) -> None:
        for connection in list(self._open):
            if connection.busy or idle_too:
                connection.transport.abort()
        self.closing.set()
        for _ in range(4):  # a transport closes its socket in one of the next rounds
            await asyncio.sleep(0)

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut(idle_too=True)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- the connections' side (lastword._scripted._player.Script)

    def take(self, request: Received) -> Exchange:
        """Give a request its answer."""
        named = request.headers.get("x-conformance-case")
        if self.case is None:
            return _BETWEEN_CASES
        if named is not None and named != self.case:
            return _STRAY
        self.requests.append(request)
        self.most_at_work = max(self.most_at_work, self.at_work + 1)  # this one is not at work yet
        place = min(self._asked, len(self._script) - 1) if self._then == "repeats" else self._asked
        self._asked += 1
        if not 0 <= place < len(self._script):
            return _WHOLE if self._then == "answers" else _UNASKED
        exchange = self._script[place]
        self.problems += [
            f"a request to the engine: {each}" for each in differences(exchange.request, request, request)
        ]
        return exchange

    def opened(self, connection: Connection) -> int:
        """Take note of a connection."""
        self._open.add(connection)
        return len(self._open)

    def changed(self, connection: Connection | None = None) -> None:
        """Take note of what became of one; it is given once it is over."""
        if connection is not None:
            self._open.discard(connection)
