"""How the application's answer is read: what of it may leave, and when it is decided how the exchange ended.

Pure: bytes in, bytes that may leave and perhaps a verdict out.  Here are the streams of chat and completions, which
the SDK's own state machine judges, whole bodies, and what is passed on unread; streams of named events are in
``events``, ``responses`` and ``messages``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from lastword._classify import ErrorInfo, classify_frame, classify_response, make_error
from lastword._codes import FINISH_REASONS, Code
from lastword._completeness import StreamTracker
from lastword._sse import MAX_EVENT_BYTES, SSEDecoder
from lastword_shim.protocol.encodings import MAX_ERROR_BYTES, decoded
from lastword_shim.protocol.endings import error_event
from lastword_shim.protocol.frames import FrameSplitter
from lastword_shim.protocol.parsing import uncollected
from lastword_shim.protocol.sameness import Sameness

EXTRAS: Final = ("metrics", "timings")
"""What engines tell of an answer beside its usage: vLLM's per-request metrics, llama.cpp's timings."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an exchange ends.

    ``error`` None is success, and then ``last`` are the bytes that its end consists of.  ``by_engine`` tells who
    decided, ``silent`` that a stream stopped without an honest terminal event, ``gone`` that the client left.
    """

    error: ErrorInfo | None = None
    last: bytes = b""
    by_engine: bool = True
    silent: bool = False
    gone: bool = False


class Reading(Protocol):
    """One answer being read."""

    @property
    def finish_reasons(self) -> Mapping[int, str | None]:
        """By choice index, as far as they were read."""

    @property
    def usage(self) -> Mapping[str, Any] | None:
        """The last that the answer told."""

    @property
    def extras(self) -> Mapping[str, Any]:
        """Members of `EXTRAS` that some engines add to an answer, the last of each."""

    def feed(self, body: bytes, *, last: bool) -> tuple[bytes, Verdict | None]:
        """Take part of the body; return what may leave now, and the verdict once there is one."""

    def cut(self, error: ErrorInfo | None) -> Verdict:
        """The application stopped in the middle, with an exception or without a word."""

    def ending(self, error: ErrorInfo) -> bytes | None:
        """What tells ``error`` where the answer has begun; None where it has no place for one."""


class StreamReading:
    """A ``text/event-stream`` of chat or completions: events leave unchanged, endings are ours."""

    def __init__(self, *, choices: int, on_content: Callable[[], None]) -> None:
        self._frames = FrameSplitter()
        self._decoder = SSEDecoder()
        self._tracker = StreamTracker(expected_choices=choices)
        self._on_content = on_content
        self._done_frame = b""
        self._sameness = Sameness()
        self._chunk: Mapping[str, Any] | None = None
        self.extras: dict[str, Any] = {}

    @property
    def finish_reasons(self) -> Mapping[int, str | None]:
        """By choice index."""
        return self._tracker.finish_reasons

    @property
    def usage(self) -> Mapping[str, Any] | None:
        """The last usage that the stream told."""
        return self._tracker.usage

    def feed(self, body: bytes, *, last: bool) -> tuple[bytes, Verdict | None]:
        """Pass fine events on; the first terminal event, or the end of the body, decides."""
        text = None if last else self._sameness.text_of(body)
        if text is not None:
            self._tracker.chunks += 1
            if text:
                self._on_content()
            return body, None
        self._sameness.forget()
        leaving = []
        frames = self._frames.feed(body)
        if self._frames.held > MAX_EVENT_BYTES:  # SSE-9: not only when the line ends
            frames.append(self._frames.rest())
        for frame in frames:
            if self._is_fine(frame):
                leaving.append(frame)
            if self._tracker.terminal is not None:
                return b"".join(leaving), self._verdict()
        if self._chunk is not None and len(frames) == 1 and len(frames[0]) == len(body):
            self._sameness.learn(body, self._chunk)
        return b"".join(leaving), self._verdict() if last else None

    def cut(self, error: ErrorInfo | None) -> Verdict:
        """An exception's own error is better than that the stream stopped."""
        return Verdict(error=error or self._tracker.end("truncated") or stopped(), silent=True)

    def ending(self, error: ErrorInfo) -> bytes:
        """An unnamed event."""
        return error_event(error)

    def _is_fine(self, frame: bytes) -> bool:
        tracker = self._tracker
        self._chunk = None
        for event in self._decoder.feed(frame):
            tracker.progressed = False
            chunk = tracker.accept(event)
            if tracker.progressed:
                self._on_content()
            if tracker.terminal == "done":
                self._done_frame = frame
            if chunk is not None:
                self._chunk = chunk
                keep_extras(chunk, self.extras)
            # A chunk that does nothing but say "abort" would be read as an end by clients that know no better.
            if chunk is not None and not tracker.progressed and _fails(chunk):
                return False
        if self._decoder.too_large:
            message = "an event of the stream is larger than the limit"
            tracker.reject(make_error(Code.MALFORMED_RESPONSE, message))
        return tracker.terminal is None

    def _verdict(self) -> Verdict:
        error = self._tracker.end("complete", pending=bool(self._frames.held))
        if error is None:
            return Verdict(last=self._done_frame)
        return Verdict(error=error, silent=self._tracker.error is None)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a whole answer turned out to be; ``error`` None is success."""

    error: ErrorInfo | None = None
    finish_reasons: Mapping[int, str | None] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None


Judge = Callable[[object], Judged]
"""Looks at the parsed body of a whole answer that has no error's shape."""


def judge_choices(choices: int) -> Judge:
    """For chat and completions: ``choices`` must all have finished (ANS-3)."""

    def judge(parsed: object) -> Judged:
        tracker = StreamTracker(expected_choices=choices)
        tracker.accept_body(parsed)
        return Judged(tracker.end("complete"), tracker.finish_reasons, tracker.usage)

    return judge


class WholeReading:
    """A body that leaves in one piece once it is known what it is: an error of any route, or a judged answer."""

    def __init__(self, *, status: int, headers: Mapping[str, str], judge: Judge | None) -> None:
        self._status = status
        self._headers = headers
        self._judge = judge
        self._parts: list[bytes] = []
        self._size = 0
        self.finish_reasons: Mapping[int, str | None] = {}
        self.usage: Mapping[str, Any] | None = None
        self.extras: dict[str, Any] = {}

    def feed(self, body: bytes, *, last: bool) -> tuple[bytes, Verdict | None]:
        """Nothing leaves before the end."""
        if self._status < 400 or self._size < MAX_ERROR_BYTES:
            self._parts.append(body)
            self._size += len(body)
        return b"", self._verdict() if last else None

    def cut(self, error: ErrorInfo | None) -> Verdict:
        """What came so far still says what kind of error it was to be."""
        if error is None and self._status >= 400:
            return self._verdict()
        return Verdict(error=error or stopped())

    def ending(self, error: ErrorInfo) -> None:
        """None: half a body of JSON has no place for an error."""

    def _verdict(self) -> Verdict:
        body = b"".join(self._parts)
        if self._status >= 400:
            readable = decoded(body, self._headers.get("content-encoding", ""))
            return Verdict(error=classify_response(self._status, self._headers, readable))
        with uncollected():
            error = self._look(body)
        return Verdict(last=body) if error is None else Verdict(error=error)

    def _look(self, body: bytes) -> ErrorInfo | None:
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError):
            return make_error(Code.MALFORMED_RESPONSE, "the answer is no JSON")
        error = classify_frame("", parsed)
        if error is not None or self._judge is None:
            return error
        if isinstance(parsed, dict):
            keep_extras(parsed, self.extras)
        judged = self._judge(parsed)
        self.finish_reasons, self.usage = judged.finish_reasons, judged.usage
        return judged.error


class PassReading:
    """An answer that is passed on unread."""

    def __init__(self, *, on_content: Callable[[], None] | None = None) -> None:
        self._on_content = on_content
        self.finish_reasons: Mapping[int, str | None] = {}
        self.usage: Mapping[str, Any] | None = None
        self.extras: dict[str, Any] = {}

    def feed(self, body: bytes, *, last: bool) -> tuple[bytes, Verdict | None]:
        """Everything leaves at once."""
        if body and self._on_content is not None:
            self._on_content()
        return (b"", Verdict(last=body)) if last else (body, None)

    def cut(self, error: ErrorInfo | None) -> Verdict:
        """Nothing is known about what was to come."""
        return Verdict(error=error or stopped())

    def ending(self, error: ErrorInfo) -> None:
        """None: nobody knows what would be understood there."""


def _fails(chunk: Mapping[str, Any]) -> bool:
    for choice in chunk["choices"]:
        reason = choice.get("finish_reason")
        if reason and (known := FINISH_REASONS.get(str(reason))) is not None and known.code is not None:
            return True
    return False


def keep_extras(answer: Mapping[str, Any], extras: dict[str, Any]) -> None:
    """Add to ``extras`` what ``answer``, or a chunk of it, has of `EXTRAS`."""
    for name in EXTRAS:
        if name in answer:
            extras[name] = answer[name]


def stopped() -> ErrorInfo:
    """The application ended before its answer did, and gave no reason."""
    return make_error(Code.INTERNAL_SERVER_ERROR, "the application stopped before its answer was complete")
