"""Answers of the Responses endpoint, and the endings that engines leave out of them.

An engine may know one terminal event only: vLLM 0.32 says ``response.completed`` of an answer that max_tokens cut and of
one that it gave up itself, and nothing at all of one that failed.  RSP rules of SPEC.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from lastword._classify import ErrorInfo, classify_frame, make_error
from lastword._codes import INCOMPLETE_REASONS, Code, Finish
from lastword_shim.protocol.endings import event, responses_failed
from lastword_shim.protocol.events import AN_ERROR, EventReading, Leave, malformed
from lastword_shim.protocol.finishes import engine_fault
from lastword_shim.protocol.readings import Judge, Judged, Verdict, keep_extras
from lastword_shim.protocol.wire import RESPONSES

_SUCCESS: Final = frozenset({"response.completed", "response.incomplete"})
_GOES_ON: Final = frozenset({"queued", "in_progress"})
_FAILURE: Final = frozenset({"response.failed", "response.cancelled"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call"})


class ResponsesReading(EventReading):
    """A stream of the Responses endpoint; ``engine_says`` are the engine's own finish_reasons, as it gives them."""

    silent_end = True

    def __init__(self, *, engine_says: Collection[str], on_content: Callable[[], None]) -> None:
        super().__init__(RESPONSES, on_content=on_content)
        self._engine_says = engine_says
        self._response: dict[str, Any] | None = None
        self._done_items: list[Any] = []
        self._seen = 0
        self._latest = ""

    def ending(self, error: ErrorInfo) -> bytes:
        """``response.failed`` with what the stream has told of the response, or the flat form before it has told any."""
        response = self._response
        if response is not None and not response.get("output"):
            response = {**response, "output": self._done_items}
        return responses_failed(error, response, self._next_number())

    def _event(self, data: str, name: str, frame: bytes) -> Verdict | Leave:
        self._seen += 1
        self._latest = data
        if name.endswith(".delta") and AN_ERROR not in data:  # the many, which need no look
            self._on_content()
            return Leave.NOW
        stripped = data.strip()
        if stripped == "[DONE]":  # some servers' habit; it ends nothing here (RSP-1)
            self._seen -= 1
            return Leave.NEVER
        if not stripped:
            return Leave.NOW
        parsed = self._read(data, name)
        if isinstance(parsed, Verdict):
            return parsed
        return self._parsed(parsed, str(parsed.get("type") or name), name, frame)

    def _parsed(self, parsed: dict[str, Any], kind: str, name: str, frame: bytes) -> Verdict | Leave:
        response = parsed.get("response")
        if isinstance(response, dict):
            self._response = response
        error = classify_frame(name, parsed)
        if error is not None:
            return Verdict(error=error)
        if kind in _SUCCESS:
            return self._finished(parsed, kind, frame if name == kind else event(parsed, name=kind))
        if kind in _FAILURE:
            return Verdict(error=_gave_up())
        if kind == "response.output_item.done":
            self._done_items.append(parsed.get("item"))
        elif kind.endswith(".delta"):
            self._on_content()
        return Leave.NOW

    def _finished(self, parsed: dict[str, Any], kind: str, frame: bytes) -> Verdict:
        response = parsed.get("response")
        if not isinstance(response, dict):
            return Verdict(error=malformed(f"{kind} holds no response"))
        status = str(response.get("status") or kind.removeprefix("response."))
        judged = _judge(response, self._engine_says, status=status)
        self.usage = judged.usage
        keep_extras(response, self.extras)
        if status in _GOES_ON or (kind, status) == ("response.incomplete", "completed"):  # RSP-2
            return Verdict(error=malformed(f"{kind} holds a response that is {status}"))
        self.finish_reasons = judged.finish_reasons
        error = classify_frame("", response) or judged.error  # as of a whole one: an error counts whatever the status
        if error is not None:
            return Verdict(error=error)
        if status == "incomplete" and kind != "response.incomplete":
            details = response.get("incomplete_details") or {"reason": "max_output_tokens"}
            told = {**parsed, "type": "response.incomplete", "response": {**response, "incomplete_details": details}}
            return Verdict(last=event(told, name="response.incomplete"))
        return Verdict(last=frame)

    def _next_number(self) -> int:
        """One more than the last event's; how many there were, where the server does not number them."""
        try:
            number = json.loads(self._latest)["sequence_number"]
        except (ValueError, RecursionError, TypeError, KeyError):
            number = None
        return number + 1 if type(number) is int and number >= 0 else self._seen


def judge_response(engine_says: Collection[str]) -> Judge:
    """For a whole answer.  One that goes on in the background has not ended, and that is no failure."""

    def judge(parsed: object) -> Judged:
        if not isinstance(parsed, dict) or not ("status" in parsed or "output" in parsed):
            return Judged(malformed("the answer is no response"))
        return _judge(parsed, engine_says, status=str(parsed.get("status") or "completed"))

    return judge


def _judge(response: Mapping[str, Any], engine_says: Collection[str], *, status: str) -> Judged:
    usage = response.get("usage")
    counts = None
    if isinstance(usage, dict):
        counts = {**usage, "prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens")}
    if status in _GOES_ON:
        return Judged(None, {}, counts)
    details = response.get("incomplete_details")
    error = engine_fault(engine_says)
    reason: str | None = None
    if status == "incomplete":
        given = details.get("reason") if isinstance(details, dict) else None
        reason = INCOMPLETE_REASONS.get(str(given), str(given)) if given else Finish.LENGTH
    elif status == "completed":
        output = response.get("output")
        items = output if isinstance(output, list) else []
        calls = any(isinstance(item, dict) and item.get("type") in _CALLS for item in items)
        reason = Finish.TOOL_CALLS if calls else Finish.STOP
    elif error is None:
        error = classify_frame("error", response) if response.get("error") else _gave_up()
    return Judged(error, {0: next(iter(sorted(engine_says)), None) if error is not None else reason}, counts)


def _gave_up() -> ErrorInfo:
    message = "the engine ended the response without an answer"
    return make_error(Code.GENERATION_ABORTED, message, origin="engine")
