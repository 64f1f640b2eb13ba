"""Answers of the Messages endpoint (Anthropic's protocol): whole with a stop_reason, and in a stream with ``message_stop``.

vLLM 0.32 gives an answer that it gave up no stop_reason, or, where no token had come, ``end_turn``.  MSG rules of SPEC.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from lastword._classify import ErrorInfo, classify_frame, make_error
from lastword._codes import STOP_REASONS, Code, Finish
from lastword_shim.protocol.endings import event
from lastword_shim.protocol.events import AN_ERROR, EventReading, Leave, malformed
from lastword_shim.protocol.finishes import engine_fault, unknown_fault
from lastword_shim.protocol.readings import Judge, Judged, Verdict
from lastword_shim.protocol.wire import MESSAGES

_NO_WORD_FOR_IT: Final = Finish.REPETITION
"""The engine's reason that is success and that vLLM turns into no stop_reason."""
_COUNTS: Final = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}


class MessagesReading(EventReading):
    """A stream of the Messages endpoint; ``engine_says`` are the engine's own finish_reasons, as it gives them."""

    silent_end = True

    def __init__(self, *, engine_says: Collection[str], on_content: Callable[[], None]) -> None:
        super().__init__(MESSAGES, on_content=on_content)
        self._engine_says = engine_says
        self._stop_reason: object = None

    def _event(self, data: str, name: str, frame: bytes) -> Verdict | Leave:
        if name == "content_block_delta" and AN_ERROR not in data:  # the many, which need no look
            self._on_content()
            return Leave.NOW
        stripped = data.strip()
        if not stripped:
            return Leave.NOW
        if stripped == "[DONE]":  # OpenAI's word, which means nothing here (MSG-1)
            return Leave.NEVER
        parsed = self._read(data, name)
        if isinstance(parsed, Verdict):
            return parsed
        error = classify_frame(name, parsed)
        return Verdict(error=error) if error is not None else self._parsed(parsed, name, frame)

    def _parsed(self, parsed: dict[str, Any], name: str, frame: bytes) -> Verdict | Leave:
        kind = str(parsed.get("type") or name)
        told = parsed.get("message") if kind == "message_start" else parsed
        if isinstance(told, dict) and isinstance(told.get("usage"), dict):
            self.usage = {**(self.usage or {}), **_counts(told["usage"])}
        if kind == "content_block_delta":
            self._on_content()
        elif kind == "message_delta":
            return self._stopping(parsed.get("delta"))
        elif kind == "message_stop":
            judged = _judge(self._stop_reason, self._engine_says)
            self.finish_reasons = judged.finish_reasons
            if judged.error is not None:
                return Verdict(error=judged.error)
            last = frame if name == kind else event(parsed, name=kind)  # clients do not see what has no name
            return Verdict(last=b"".join([*self._waiting, last]))
        return Leave.WAIT if self._stop_reason and kind == "ping" else Leave.NOW  # it tells nothing of the end

    def _stopping(self, delta: object) -> Verdict | Leave:
        """A stop_reason is read as the end by clients that do not wait for message_stop: it waits; a bad one decides."""
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        if reason:
            self._stop_reason = reason
            judged = _judge(reason, self._engine_says)
            if judged.error is not None:
                self.finish_reasons = judged.finish_reasons
                return Verdict(error=judged.error)
        return Leave.WAIT


def judge_message(engine_says: Collection[str]) -> Judge:
    """For a whole answer."""

    def judge(parsed: object) -> Judged:
        if not isinstance(parsed, dict):
            return Judged(malformed("the answer is no object"))
        usage = parsed.get("usage")
        counts = _counts(usage) if isinstance(usage, dict) else None
        judged = _judge(parsed.get("stop_reason"), engine_says)
        return Judged(judged.error, judged.finish_reasons, counts)

    return judge


def _judge(stop_reason: object, engine_says: Collection[str]) -> Judged:
    error = engine_fault(engine_says)
    if error is not None:
        return Judged(error, {0: next(iter(sorted(engine_says)))})
    if not stop_reason:
        if _NO_WORD_FOR_IT in engine_says:
            return Judged(None, {0: _NO_WORD_FOR_IT})
        return Judged(_without_reason(), {0: None})
    reason = _word(stop_reason)
    return Judged(unknown_fault(reason), {0: reason})


def _word(stop_reason: object) -> str:
    return STOP_REASONS.get(str(stop_reason), str(stop_reason))


def _without_reason() -> ErrorInfo:
    return make_error(Code.STREAM_INCOMPLETE, "the answer ended without a stop_reason")


def _counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Anthropic's counts under the names that the rest of the shim knows; what was read from a cache is prompt as well."""
    counts = {ours: usage[theirs] for theirs, ours in _COUNTS.items() if usage.get(theirs) is not None}
    cached = [usage.get(name) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")]
    if type(counts.get("prompt_tokens")) is int:
        counts["prompt_tokens"] += sum(number for number in cached if type(number) is int)
    return counts
