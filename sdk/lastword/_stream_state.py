"""What the sync and the async stream share: everything but the waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import httpx

from lastword._call import Call
from lastword._classify import make_error
from lastword._codes import Code
from lastword._errors import LastwordError
from lastword._outcome import Outcome, ToolCall
from lastword._sse import MAX_EVENT_BYTES, ServerSentEvent, SSEDecoder

T = TypeVar("T")


class BeingRead(RuntimeError):
    """A second reader asked for the next chunk while the first one waits for it; the stream is not its to close."""


class StreamState(Generic[T]):
    """A stream's answer so far, and its outcome once it has ended."""

    def __init__(self, call: Call, build: Callable[[Any], T], on_end: Callable[[], None], *, quiet: bool) -> None:
        self.outcome: Outcome | None = None
        self._call = call
        self._build = build
        self._on_end = on_end
        self._quiet = quiet
        self._response: httpx.Response | None = None
        self._busy = False  # somebody is inside the transport
        self._closed = False
        self._handed = time.monotonic()  # when the caller last got something
        self._callers_seconds = 0.0  # what the caller took since the last wait
        self._reset()

    @property
    def text(self) -> str:
        """What choice 0 has said so far."""
        return self._call.tracker.text

    @property
    def texts(self) -> Mapping[int, str]:
        """What each choice has said so far."""
        return self._call.tracker.texts

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls of the choices that have finished; one that was cut short is withheld."""
        return self._call.tracker.tool_calls

    @property
    def usage(self) -> Mapping[str, Any] | None:
        """The last token counts that the server sent (keys as OpenAI's ``usage``), if any."""
        return self._call.tracker.usage

    @property
    def finish_reasons(self) -> Mapping[int, str | None]:
        """Each choice's finish_reason as the server wrote it, None while it has none."""
        return dict(self._call.tracker.finish_reasons)

    @property
    def request_id(self) -> str:
        """The server's id of this request, else the one that was sent."""
        return self._call.request_id

    def _reset(self) -> None:
        self._decoder = SSEDecoder()
        self._events: Iterator[ServerSentEvent] = iter(())

    def _take(self) -> T | None:
        """The next chunk of the events at hand; None if they are used up or the terminal event was among them."""
        accept = self._call.tracker.accept
        for event in self._events:
            chunk = accept(event)
            if chunk is not None:
                return self._build(chunk)
            if self._call.tracker.terminal is not None:
                return None
        if self._decoder.too_large:
            message = f"an event of the stream is larger than {MAX_EVENT_BYTES} bytes"
            details = {"max_event_bytes": MAX_EVENT_BYTES}
            self._call.tracker.reject(make_error(Code.MALFORMED_RESPONSE, message, details=details))
        return None

    def _before_wait(self) -> None:
        """The idle timer starts again after content.  The caller's own time is not counted; that of reading what the server
        sends is, or a flood of comments would hold the timers up."""
        if self._call.tracker.progressed:
            self._call.tracker.progressed = False
            self._call.deadline.progress(time.monotonic())
        else:
            self._call.deadline.exclude(self._callers_seconds)
        self._callers_seconds = 0.0

    def _asked(self) -> None:
        """The caller wants the next chunk."""
        if self._busy:
            raise BeingRead("the stream is being read already: one reader at a time")
        self._callers_seconds += time.monotonic() - self._handed

    def _hand_over(self, chunk: T) -> T:
        """``chunk``, noting that the caller has got it."""
        self._call.delivered = True
        self._handed = time.monotonic()
        return chunk

    def _last_word(self, error: LastwordError | None) -> bool:
        """Fix the outcome; false if it was fixed before."""
        if self.outcome is not None:
            return False
        self._call.note(error)
        self.outcome = self._call.outcome(error)
        self._on_end()
        return True

    def _over(self, stop: type[Exception]) -> Exception:
        """What the iteration of an ended stream raises: the same each time."""
        assert self.outcome is not None
        return stop() if self._quiet or self.outcome.error is None else self.outcome.error

    def _closed_error(self) -> LastwordError:
        return self._call.cancelled("the stream was closed before it ended")
