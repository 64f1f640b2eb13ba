"""Streams of events whose answer is not judged: passed on as they come, but an error among them is the end, and said in
our words.  What follows each event of a stream that is judged is built on this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import Any, Final

from lastword._classify import ErrorInfo, classify_frame, make_error
from lastword._codes import Code
from lastword._sse import MAX_EVENT_BYTES, SSEDecoder
from lastword_shim.protocol.endings import error_event, event, messages_error, responses_failed
from lastword_shim.protocol.frames import FrameSplitter
from lastword_shim.protocol.readings import Verdict, stopped
from lastword_shim.protocol.wire import MESSAGES, RESPONSES

AN_ERROR: Final = '"error"'
"""A member of that name; what a text says of errors has backslashes before its quotes."""
_NAMES_ERROR: Final = frozenset({"error", "response.failed"})
_SAYS_DELTA: Final = re.compile(r'\s*\{\s*"type"\s*:\s*"[\w.]*delta"')


class Leave(Enum):
    """What becomes of an event that does not decide."""

    NOW = auto()
    WAIT = auto()
    """Until the next one tells what it meant."""
    NEVER = auto()


class EventReading:
    """A ``text/event-stream`` of whole events in order; ``_event`` tells what each means."""

    silent_end = False
    """Whether an end of the body without a terminal event is a failure."""

    def __init__(self, kind: str, *, on_content: Callable[[], None]) -> None:
        self._kind = kind
        self._on_content = on_content
        self._frames = FrameSplitter()
        self._decoder = SSEDecoder()
        self._waiting: list[bytes] = []
        self.finish_reasons: Mapping[int, str | None] = {}
        self.usage: Mapping[str, Any] | None = None
        self.extras: dict[str, Any] = {}

    def feed(self, body: bytes, *, last: bool) -> tuple[bytes, Verdict | None]:
        """Events leave whole; the first that is terminal, or the end of the body, decides."""
        leaving: list[bytes] = []
        for frame in self._cut_into_frames(body, last):
            verdict = self._frame(frame, leaving)
            if verdict is not None:
                return b"".join(leaving), verdict
        if not last:
            return b"".join(leaving), None
        if self.silent_end:
            return b"".join(leaving), Verdict(error=self._unterminated("the body ended"), silent=True)
        return b"", Verdict(last=b"".join(leaving))

    def cut(self, error: ErrorInfo | None) -> Verdict:
        """An exception's own error is better than that the stream stopped."""
        if not self.silent_end:
            return Verdict(error=error or stopped())
        return Verdict(error=error or self._unterminated("the application stopped"), silent=True)

    def ending(self, error: ErrorInfo) -> bytes:
        """As the clients of this protocol read it."""
        if self._kind == MESSAGES:
            return event(messages_error(error), name="error")
        if self._kind == RESPONSES:
            return responses_failed(error, None, 0)
        return error_event(error)

    def _read(self, data: str, name: str) -> dict[str, Any] | Verdict:
        """An event's object; the verdict where it has none, for every event of these protocols is one."""
        try:
            parsed = json.loads(data)
        except (ValueError, RecursionError):
            return Verdict(error=classify_frame(name, data) or malformed("an event of the stream is no JSON"))
        if not isinstance(parsed, dict):
            return Verdict(error=classify_frame(name, parsed) or malformed("an event of the stream is no object"))
        return parsed

    def _cut_into_frames(self, body: bytes, last: bool) -> Iterator[bytes]:
        yield from self._frames.feed(body)
        if self._frames.held > MAX_EVENT_BYTES or (last and not self.silent_end and self._frames.held):
            yield self._frames.rest()

    def _frame(self, frame: bytes, leaving: list[bytes]) -> Verdict | None:
        fate = Leave.WAIT if self._waiting else Leave.NOW  # a comment goes with what is about it
        for data, name in self._decoder.feed(frame):
            told = self._event(data, name, frame)
            if isinstance(told, Verdict):
                return told
            fate = told
        if self._decoder.too_large and self.silent_end:
            return Verdict(error=malformed("an event of the stream is larger than the limit"))
        if fate is Leave.WAIT:
            self._waiting.append(frame)
        elif fate is Leave.NOW:
            leaving += [*self._waiting, frame]
            self._waiting.clear()
        return None

    def _event(self, data: str, name: str, frame: bytes) -> Verdict | Leave:
        error = self._error(data, name)
        if error is not None:
            return Verdict(error=error)
        if self._kind not in {RESPONSES, MESSAGES} or name.endswith("delta") or _SAYS_DELTA.match(data):
            self._on_content()  # those protocols begin with events that tell of no token
        return Leave.NOW

    def _error(self, data: str, name: str) -> ErrorInfo | None:
        if name not in _NAMES_ERROR and AN_ERROR not in data and '"response.failed"' not in data:
            return None
        try:
            parsed = json.loads(data)
        except (ValueError, RecursionError):
            return classify_frame(name, data)
        return classify_frame(name, parsed) if name in _NAMES_ERROR or _is_error(parsed) else None

    def _unterminated(self, what: str) -> ErrorInfo:
        return make_error(Code.STREAM_INCOMPLETE, f"{what} before the stream's terminal event")


def malformed(what: str) -> ErrorInfo:
    """What came is none of this protocol's."""
    return make_error(Code.MALFORMED_RESPONSE, what)


def _is_error(parsed: object) -> bool:
    """An error of the stream: not of one of the calls that a JSON-RPC stream answers."""
    if not isinstance(parsed, dict) or "jsonrpc" in parsed:
        return False
    words = ("error", "response.failed")
    return bool(parsed.get("error")) or parsed.get("object") == "error" or parsed.get("type") in words
