"""One request to the server under test and what came back, as bytes on a socket: nothing of a client library hides it.

Only what HTTP/1.1 means is left to a library (h11), for that is not what is tested.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import h11

from lastword._sse import ServerSentEvent, SSEDecoder

if TYPE_CHECKING:
    from lastword.conformance.server._request import Request, Target

End = Literal["complete", "truncated", "reset", "closed", "refused", "late", "left", "endless"]
"""complete: as its framing says. truncated, reset: in the middle of it. closed: before any head. refused: no connection.
late: not in the time that there was. left: we went. endless: more than anybody could want."""

LINGER: Final = 2.0
"""Seconds that a body may stay open once its terminal event has come."""
_ERROR: Final = re.compile(r'\s*\{\s*"error"\s*:\s*[^n\s]')  # "error": null is none
_TERMINAL_NAMES: Final = frozenset({
    "error", "message_stop", "response.completed", "response.incomplete", "response.failed",
})  # fmt: skip
_MOST: Final = 64 * 2**20  # bytes of one body; a server that never ends must not take the memory
_MOST_EVENTS: Final = 100_000  # of one stream, for the same reason: small ones weigh more than their bytes


@dataclass(slots=True)
class Answer:
    """What came back. Times are ``time.monotonic()`` seconds."""

    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)  # names in lower case, repeated ones kept
    body: bytearray = field(default_factory=bytearray)
    events: list[ServerSentEvent] = field(default_factory=list)
    event_times: list[float] = field(default_factory=list)
    pending: bool = False  # the body's end cut an event in two
    end: End = "late"
    started_at: float = 0.0
    ended_at: float = 0.0
    log: list[tuple[float, str]] = field(default_factory=list)

    def values(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self.headers if key == name]

    @property
    def content_type(self) -> str:
        """Without its parameters, in lower case."""
        return "".join(self.values("content-type")[:1]).partition(";")[0].strip().lower()

    @property
    def is_stream(self) -> bool:
        """Whether events came, or were to come."""
        return self.status is not None and self.status < 400 and self.content_type == "text/event-stream"

    def note(self, text: str) -> None:
        """Log what happened just now."""
        self.log.append((time.monotonic(), text))


class Asking:
    """A request under way: ``run`` it in a task; ``answer`` fills as bytes come."""

    def __init__(self, target: Target, request: Request, *, limit: float, leave_after: int | None = None) -> None:
        """``limit`` in seconds for all of it; ``leave_after`` so many events the client goes."""
        self.answer = Answer(started_at=time.monotonic())
        self.request = request
        self.sent = asyncio.Event()
        self.begun = asyncio.Event()  # the first event came, or the answer is over
        self.unreached = ""  # why there was no connection at all, if it was not refused
        self._target, self._limit, self._leave_after = target, limit, leave_after
        self._leaving = asyncio.Event()
        self._http = h11.Connection(h11.CLIENT)
        self._decoder = SSEDecoder(max_event_bytes=_MOST)
        self._terminal_seen = False
        self._left_as: End = "left"

    def leave(self, *, late: bool = False) -> None:
        """Close the connection, whatever the server is doing; ``late``: because it has had its time."""
        self._left_as = "late" if late else "left"
        self._leaving.set()

    async def run(self) -> Answer:
        """Send, read to the end, and give the answer; never raises for what the server does."""
        answer, writer = self.answer, None
        answer.started_at = time.monotonic()
        try:
            async with asyncio.timeout(self._limit) as clock:
                tls = ssl.create_default_context() if self._target.tls else None
                reader, writer = await asyncio.open_connection(self._target.host, self._target.port, ssl=tls)
                writer.write(self.request.wire)
                await writer.drain()
                self.sent.set()
                answer.note(f"> {self.request.title}")
                await self._until_left_or(self._read(reader, clock))
        except TimeoutError:
            answer.end = "late"
        except ConnectionRefusedError:
            answer.end = "refused"
        except (OSError, UnicodeError) as error:  # UnicodeError: no name of a host
            answer.note(f"< {error}")
            answer.end = "closed" if answer.status is None else "reset"
            if writer is None:
                self.unreached = f"{error.strerror if isinstance(error, OSError) else 'no name of a host'}"
        finally:
            answer.ended_at = time.monotonic()
            answer.pending = self._decoder.pending and answer.is_stream and bool(answer.body)
            answer.note(f"< {answer.end}")
            self.sent.set()
            self.begun.set()
            if writer is not None:
                writer.close()
                with contextlib.suppress(OSError, TimeoutError):
                    await asyncio.wait_for(writer.wait_closed(), 1)
        return answer

    async def _until_left_or(self, reading: Coroutine[Any, Any, None]) -> None:
        read = asyncio.ensure_future(reading)
        left = asyncio.ensure_future(self._leaving.wait())
        try:
            await asyncio.wait({read, left}, return_when=asyncio.FIRST_COMPLETED)
            if read.done():
                await read
            else:
                self.answer.end = self._left_as
        finally:
            for task in (read, left):
                task.cancel()
            await asyncio.gather(read, left, return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader, clock: asyncio.Timeout) -> None:
        answer, http = self.answer, self._http
        http.send(h11.Request(method=self.request.method, target="/", headers=[("host", "x")]))
        http.send(h11.EndOfMessage())
        while True:
            try:
                event = http.next_event()
                if event is h11.NEED_DATA:
                    http.receive_data(await reader.read(65536))
                    continue
            except h11.RemoteProtocolError as error:
                answer.note(f"< {error}")
                answer.end = "closed" if answer.status is None else "truncated"
                return
            if isinstance(event, h11.Response):
                answer.status = event.status_code
                answer.headers = [(name.decode(), value.decode("latin-1")) for name, value in event.headers]
                answer.note(f"< {event.status_code} {answer.content_type}")
            elif isinstance(event, h11.Data):
                if self._take(bytes(event.data)):
                    answer.end = "left"
                    return
                if len(answer.body) > _MOST or len(answer.events) > _MOST_EVENTS:
                    answer.end = "endless"
                    return
                if self._terminal_seen:
                    clock.reschedule(asyncio.get_running_loop().time() + LINGER)
                    self._terminal_seen = False
            elif isinstance(event, h11.EndOfMessage):
                answer.end = "complete"
                return
            elif isinstance(event, h11.ConnectionClosed):
                answer.end = "closed"
                return

    def _take(self, data: bytes) -> bool:
        """Take part of the body; whether the client leaves now."""
        answer = self.answer
        answer.body += data
        if not answer.is_stream:
            return False
        seen = bool(answer.events) and _may_be_terminal(answer.events[-1])
        for event in self._decoder.feed(data):
            answer.events.append(event)
            answer.event_times.append(time.monotonic())
            answer.note(f"< {event.event + ': ' if event.event else ''}{event.data[:200]}")
            if not seen and _may_be_terminal(event):
                seen = self._terminal_seen = True
            self.begun.set()
            if self._leave_after is not None and len(answer.events) >= self._leave_after:
                return True
        return False


def _may_be_terminal(event: ServerSentEvent) -> bool:
    return event.data.strip() == "[DONE]" or event.event in _TERMINAL_NAMES or _ERROR.match(event.data) is not None
