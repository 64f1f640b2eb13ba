"""Whether an answer is whole: events and the way the wire ended become chunks and exactly one verdict.

The one machine behind every stream, whole body, shim and vector.  It does no I/O and knows no clock.  Its rules are
OUT, STR and TOOL of SPEC.md: a request is completed only if each choice that was asked for has a finish_reason of the
success set and the terminal event arrived; an error event is terminal whatever follows it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, Literal

from lastword._classify import MAX_RAW, ErrorInfo, classify_frame, make_error
from lastword._codes import FINISH_REASONS, PROFILES, Code, Profile
from lastword._envelopes import shown
from lastword._outcome import Partial, ToolCall
from lastword._sse import ServerSentEvent
from lastword._tool_calls import ToolCallAssembly

WireEnd = Literal["complete", "truncated", "reset"]
"""How a body ended: as its framing says it must, before that, or by a reset connection."""

_HOW: Final = {
    "complete": "the body ended",
    "truncated": "the connection closed in the middle of the body",
    "reset": "the connection was reset in the middle of the body",
}
_MAX_NAMED: Final = 100  # choices that are missing and named; `n` is whatever the caller wrote, a billion perhaps
_loads: Final = json.loads


def expected_choices(body: Mapping[str, Any]) -> int:
    """How many choices a request asks for: ``n`` × its prompts (OUT-3).  A prompt is a text or a list of token ids."""
    prompt = body.get("prompt")
    prompts = 1
    if isinstance(prompt, list | tuple) and prompt and not isinstance(prompt[0], int):
        prompts = len(prompt)
    return _whole(body.get("n")) * prompts


class StreamTracker:
    """Follows one answer of a chat or completions endpoint.

    Feed it the events in order, then call ``end`` once.  After a terminal event it ignores everything.
    """

    __slots__ = ("_calls", "_expected", "_profile", "_texts", "chunks", "error", "finish_reasons", "progressed",
                 "terminal", "usage")  # fmt: skip

    def __init__(self, *, expected_choices: int = 1, profile: Profile | None = None) -> None:
        self.terminal: Literal["done", "error"] | None = None
        self.error: ErrorInfo | None = None
        self.progressed = False  # set by content, reset by whoever watches the idle timer
        self.chunks = 0
        self.usage: dict[str, Any] | None = None
        self.finish_reasons: dict[int, str | None] = {}
        self._expected = expected_choices
        self._profile = profile
        self._texts: dict[int, list[str]] = {}
        self._calls = ToolCallAssembly()

    def accept(self, event: ServerSentEvent) -> dict[str, Any] | None:
        """Take one event; return the chunk to hand over, or None if it is none."""
        if self.terminal is not None:
            return None
        data, name = event
        try:
            chunk = _loads(data)
        except (ValueError, RecursionError):
            self._not_json(name, data)
            return None
        if (
            chunk.__class__ is not dict
            or name == "error"
            or chunk.get("error")
            or chunk.get("object") == "error"  # CLS-7: before choices is read
            or chunk.get("type") == "error"
        ):
            self._not_a_chunk(name, chunk)
            return None
        choices = chunk.get("choices")
        if choices.__class__ is not list:
            self._not_a_chunk(name, chunk)
            return None
        return chunk if self._take(chunk, choices, "delta") else None

    def accept_body(self, body: object) -> None:
        """Take the whole body of a non-stream answer, already known to be no error."""
        choices = body.get("choices") if isinstance(body, dict) else None
        if not isinstance(body, dict) or not isinstance(choices, list):
            self.reject(_malformed("the answer has no list of choices", body))
        elif self._take(body, choices, "message"):
            self.terminal = "done"

    def reject(self, error: ErrorInfo) -> None:
        """End the answer with ``error``, unless it has ended already."""
        if self.terminal is None:
            self.terminal, self.error = "error", error

    def end(self, wire: WireEnd = "complete", *, pending: bool = False) -> ErrorInfo | None:
        """The verdict: None if the answer completed.  ``pending``: the end cut an event in two."""
        for index, reason in self.finish_reasons.items():  # FIN-2: whatever follows
            known = FINISH_REASONS.get(reason or "")
            if known is not None and known.code is not None:
                message = f"the engine ended choice {index} with finish_reason {reason!r}"
                return make_error(
                    known.code, message, origin="engine", details={"finish_reason": reason, "choice": index}
                )
        if self.error is not None:
            return self.error
        if self.terminal is None and not self._may_end_without_done(wire, pending):
            return self._unterminated(wire, pending)
        return self._unfinished() or self._unknown()

    @property
    def text(self) -> str:
        """What choice 0 has said so far."""
        return "".join(self._texts.get(0, ()))

    @property
    def texts(self) -> dict[int, str]:
        """What each choice has said so far."""
        return {index: "".join(parts) for index, parts in self._texts.items()}

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls of choices that have finished; one that ``length`` cut short is withheld (TOOL-2)."""
        success = {i: r for i, r in self.finish_reasons.items() if r and (k := FINISH_REASONS.get(r)) and k.success}
        calls = [call for call in self._calls.all() if call.choice in success]
        return [call for call in calls if success[call.choice] != "length" or call.whole]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a completed answer should still be told about, such as ``repetition``."""
        known = (FINISH_REASONS.get(reason or "") for reason in self.finish_reasons.values())
        return tuple(reason.warning for reason in known if reason is not None and reason.warning)

    def partial(self) -> Partial:
        """A snapshot of what has been received."""
        return Partial(
            text=self.text,
            texts=self.texts,
            tool_calls=tuple(self._calls.all()),
            usage=self.usage,
            finish_reasons=dict(self.finish_reasons),
            chunks=self.chunks,
        )

    def _take(self, chunk: dict[str, Any], choices: list[Any], part: str) -> bool:
        for position, choice in enumerate(choices):
            if choice.__class__ is not dict:
                return self._malformed("a choice is no object", chunk)
            index = choice.get("index")
            if index is None:
                index = position if part == "message" else 0
            elif index.__class__ is not int or index < 0:
                return self._malformed(f"a choice has the index {shown(index)}", chunk)
            delta = choice.get(part)
            if delta.__class__ is dict:
                self._take_part(index, delta, whole=part == "message")
            elif delta is not None:
                return self._malformed(f"a choice's {part} is no object", chunk)
            text = choice.get("text")
            if text is None and delta is None and part == "message":
                return self._malformed("a choice has neither a message nor a text", chunk)
            if text:
                self.progressed = True
                self._add_text(index, text)
            reason = choice.get("finish_reason")
            if reason:
                self._finish(index, shown(reason))
            elif index not in self.finish_reasons:
                self.finish_reasons[index] = None
        usage = chunk.get("usage")
        if usage.__class__ is dict:
            self.usage = usage  # counts are cumulative: the last one holds
        self.chunks += 1
        return True

    def _take_part(self, index: int, part: dict[str, Any], *, whole: bool) -> None:
        for name, value in part.items():
            if value and name != "role":
                self.progressed = True
                if name == "content":
                    self._add_text(index, value)
                elif name == "tool_calls":
                    self._calls.add(index, value, whole=whole)
                elif name == "function_call":
                    self._calls.add(index, [{"index": 0, "function": value}], whole=False)

    def _add_text(self, index: int, value: Any) -> None:
        if value.__class__ is list:  # content in parts, as Mistral sends it
            for each in value:
                if each.__class__ is dict and each.get("text"):
                    self._add_text(index, each["text"])
        elif value.__class__ is str:
            parts = self._texts.get(index)
            if parts is None:
                self._texts[index] = [value]
            else:
                parts.append(value)

    def _finish(self, index: int, reason: str) -> None:
        held = self.finish_reasons.get(index)
        known = FINISH_REASONS.get(held or "")
        if not held or (known is not None and known.success):  # a bad or unknown end is never taken back (FIN-3)
            self.finish_reasons[index] = reason

    def _not_json(self, name: str, data: str) -> None:
        stripped = data.strip()
        if name == "error":
            self.reject(classify_frame(name, stripped) or _malformed("an error event", data))
        elif stripped == "[DONE]":
            self.terminal = "done"
        elif stripped:  # an empty data line is a keep-alive of some servers
            self.reject(_malformed("an event of the stream is no JSON", data))

    def _not_a_chunk(self, name: str, value: object) -> None:
        error = classify_frame(name, value)
        if error is not None:
            self.reject(error)
        elif not isinstance(value, dict) or value.get("choices") is not None:
            self.reject(_malformed("an event of the stream is no chunk", value))
        elif isinstance(value.get("usage"), dict):
            self.usage = value["usage"]

    def _malformed(self, what: str, value: object) -> Literal[False]:
        self.reject(_malformed(what, value))
        return False

    def _may_end_without_done(self, wire: WireEnd, pending: bool) -> bool:
        whole = wire == "complete" and not pending  # half an event may have been an error's
        return whole and self._profile is not None and self._profile.accepts_missing_done

    def _unterminated(self, wire: WireEnd, pending: bool) -> ErrorInfo:
        missing = "an answer could be read from it"
        if self.chunks:
            chunks = "1 chunk" if self.chunks == 1 else f"{self.chunks} chunks"
            missing = f"the stream's terminal event, after {chunks}"
        message = f"{_HOW[wire]} before {missing}"
        if pending:
            message += ", with half an event left over"
        if wire == "complete" and self._unfinished() is None:
            message += _hint("accepts_missing_done")
        return make_error(Code.STREAM_INCOMPLETE, message, details={"chunks": self.chunks, "wire": wire})

    def _unfinished(self) -> ErrorInfo | None:
        missing = list(islice((i for i in range(self._expected) if i not in self.finish_reasons), _MAX_NAMED))
        if self._profile is None or not self._profile.accepts_null_finish_reason:
            missing = sorted([*missing, *(i for i, reason in self.finish_reasons.items() if not reason)])
        if not missing:
            return None
        message = f"the answer ended without a finish_reason for choice {', '.join(map(str, missing))}"
        if all(index in self.finish_reasons for index in missing):
            message += _hint("accepts_null_finish_reason")
        details = {"unfinished_choices": missing, "expected_choices": self._expected}
        return make_error(Code.STREAM_INCOMPLETE, message, details=details)

    def _unknown(self) -> ErrorInfo | None:
        for index, reason in self.finish_reasons.items():
            if reason and reason not in FINISH_REASONS:
                message = f"choice {index} ended with the finish_reason {reason!r}, which this version does not know"
                details = {"finish_reason": reason, "choice": index}
                return make_error(Code.UNKNOWN_FINISH_REASON, message, details=details)
        return None


def _malformed(what: str, value: object) -> ErrorInfo:
    return make_error(Code.MALFORMED_RESPONSE, what, raw=shown(value)[:MAX_RAW])


def _whole(n: object) -> int:
    """``n`` as servers read it that validate loosely: 2, 2.0 and "2" are two; 1 where it is none of these."""
    try:
        number = float(n) if isinstance(n, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return 1
    return int(number) if number.is_integer() and number > 0 else 1


def _hint(ability: str) -> str:
    names = [name for name, profile in PROFILES.items() if getattr(profile, ability)]
    return f" (if this server always ends so, the profile {' or '.join(names)} accepts it)" if names else ""
