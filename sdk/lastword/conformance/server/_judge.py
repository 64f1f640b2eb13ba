"""Holds an answer of the server under test against a vector: what kind of end it is, and whether that end is the true one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lastword._classify import ErrorInfo
from lastword._codes import Code
from lastword._completeness import StreamTracker, WireEnd
from lastword._sse import ServerSentEvent
from lastword.conformance._faults import Fault
from lastword.conformance._results import Verdict
from lastword.conformance.server._dialects import SUCCESS, Told, as_chat, body_as_chat
from lastword.conformance.server._errors import (
    Said,
    as_list,
    judge_error,
    judge_headers,
    said_in_body,
    said_in_event,
)
from lastword.conformance.server._exchange import LINGER, Answer
from lastword.conformance.server._request import Request

_WIRE: Final[Mapping[str, WireEnd]] = {"complete": "complete", "truncated": "truncated"}


@dataclass(slots=True)
class Reading:
    """An answer, understood.

    ``terminals`` are ``done`` and ``error`` as they came; ``garbage`` an event that is neither; ``after`` counts what followed
    the first of them; ``flaw`` is why a receiver would not call it whole.
    """

    tracker: StreamTracker
    terminals: list[str] = field(default_factory=list)
    said: Said | None = None
    event_name: str = ""
    garbage: str | None = None
    after: int = 0
    flaw: ErrorInfo | None = None
    success: str = "[DONE]"


def read(request: Request, answer: Answer) -> Reading:
    """Understand an answer, be it a stream, a body or an error."""
    tracker = StreamTracker(expected_choices=request.choices)
    reading = Reading(tracker, success=SUCCESS.get(request.endpoint, "[DONE]"))
    if answer.status is None:
        return reading
    if answer.status >= 400:
        reading.said = said_in_body(answer)
    elif answer.is_stream:
        for told in as_chat(request.endpoint, answer.events):
            _take(reading, told)
        reading.flaw = reading.tracker.end(_WIRE.get(answer.end, "reset"), pending=answer.pending)
    elif request.judged:
        _take_body(reading, request, answer)
    return reading


def judge(expect: Mapping[str, Any], request: Request, answer: Answer, rules: frozenset[str]) -> Iterator[Fault]:
    """Everything that is wrong with an answer."""
    if answer.status is None:
        yield _no_answer(answer)
        return
    if answer.end == "endless":
        yield Fault(Verdict.HANG, "the answer goes on and on: the client gave up")
        return
    reading = read(request, answer)
    statuses, terminals = as_list(expect.get("status", 200)), as_list(expect.get("terminal", ()))
    failure = answer.status >= 400
    may_be_whole = any(status < 400 for status in statuses) and ("done" in terminals or not terminals)
    if answer.status not in statuses and not (answer.status < 400 and answer.end in ("truncated", "reset")):
        yield _wrong_status(answer.status, statuses, may_be_whole=may_be_whole, reading=reading)
    elif not failure and request.judged:
        if answer.is_stream:
            yield from _stream(reading, answer, terminals)
        else:
            yield from _body(reading, answer, may_be_whole=may_be_whole, stream=request.stream)
        says_it_is_whole = answer.end == "complete" or "done" in reading.terminals
        if may_be_whole and says_it_is_whole and reading.said is None:
            yield from _content(expect, reading)
    elif not failure:
        yield from _plain(expect, answer)
    if reading.said is not None and "error" in expect:
        yield from judge_error(reading.said, expect["error"], answer, name=reading.event_name, rules=rules)
    if failure and answer.end == "truncated":
        yield Fault(Verdict.DETAIL, "the body of the error was cut")
    yield from judge_headers(answer, expect.get("headers", {}), rules)
    yield from _times(expect, answer)


def _take(reading: Reading, told: Told) -> None:
    event = told.event
    if not event.data.strip():
        return
    has_ended = reading.garbage is not None or bool(reading.terminals)
    kind = _kind(StreamTracker() if has_ended else reading.tracker, event)
    if has_ended and kind in ("chunk", "garbage"):
        reading.after += 1
    elif kind == "garbage":
        reading.garbage = event.data
    elif kind != "chunk":
        reading.terminals.append(kind)
        if kind == "error" and reading.said is None:
            reading.said = said_in_event(event.data, event.event, frame=told.frame)
            reading.event_name = event.event


def _kind(tracker: StreamTracker, event: ServerSentEvent) -> str:
    tracker.accept(event)
    if tracker.error is not None and tracker.error.code == Code.MALFORMED_RESPONSE:
        return "garbage"
    return tracker.terminal or "chunk"


def _take_body(reading: Reading, request: Request, answer: Answer) -> None:
    said = said_in_body(answer)
    if said.info is not None:
        reading.said = said
    elif isinstance(said.value, str):
        reading.garbage = said.value
    elif request.stream:
        reading.garbage = "a whole answer"
    else:
        reading.tracker.accept_body(body_as_chat(request.endpoint, said.value))
        reading.flaw = reading.tracker.end(_WIRE.get(answer.end, "reset"))


def _no_answer(answer: Answer) -> Fault:
    if answer.end == "late":
        return Fault(Verdict.HANG, "no answer in the time allowed")
    if answer.end == "refused":
        return Fault(Verdict.CRASH, "the server refuses connections")
    return Fault(Verdict.WRONG_CODE, "the connection was closed without an answer")


def _wrong_status(status: int, statuses: list[int], *, may_be_whole: bool, reading: Reading) -> Fault:
    wanted = " or ".join(map(str, statuses))
    if status < 400 and not may_be_whole:
        how = " with an error in its body" if reading.said else ""
        return Fault(Verdict.SILENT, f"a failure was answered with {status}{how}, not {wanted}")
    if status >= 400 and all(each < 400 for each in statuses):
        return Fault(Verdict.FALSE_ALARM, f"a good request was answered with {status}, not {wanted}")
    return Fault(Verdict.WRONG_CODE, f"status is {status}, not {wanted}")


def _stream(reading: Reading, answer: Answer, wanted: list[str]) -> Iterator[Fault]:
    got, success = reading.terminals[0] if reading.terminals else None, reading.success
    if got is None:
        yield _no_terminal(reading, answer)
    elif wanted and got not in wanted:
        verdict, how = (Verdict.SILENT, success) if got == "done" else (Verdict.FALSE_ALARM, "an error event")
        kind = "a failure" if got == "done" else "a good stream"
        yield Fault(verdict, f"{kind} ended with {how}")
    elif got == "done" and reading.flaw is not None and reading.flaw.code != Code.UNKNOWN_FINISH_REASON:
        yield Fault(Verdict.SILENT, f"{success} was sent, and yet {reading.flaw.message}")
    if "done" in reading.terminals[1:] and got == "error":
        yield Fault(Verdict.WRONG_CODE, f"the error event was followed by {success}, which says success (STR-14)")
    elif len(reading.terminals) > 1:
        named = " and ".join(success if each == "done" else "an error event" for each in reading.terminals)
        verdict = Verdict.SILENT if "error" in reading.terminals[1:] and got == "done" else Verdict.DETAIL
        yield Fault(verdict, f"the stream has more than one terminal event: {named} (STR-14)")
    if reading.after:
        yield Fault(Verdict.DETAIL, "more was sent after the terminal event (STR-14)")
    if got is not None and answer.end == "late":
        yield Fault(Verdict.DETAIL, f"the body had not ended {LINGER:g} s after its terminal event")
    elif got is not None and answer.end in ("truncated", "reset"):
        yield Fault(Verdict.DETAIL, "the connection was cut after the terminal event")


def _no_terminal(reading: Reading, answer: Answer) -> Fault:
    if reading.garbage is not None:
        return Fault(Verdict.WRONG_CODE, "an event that is neither a chunk nor an error was passed on")
    if answer.end == "late":
        return Fault(Verdict.HANG, "the stream did not end in the time allowed")
    if answer.end == "complete":
        return Fault(Verdict.SILENT, "the stream ended as a whole one does, without a terminal event (STR-14)")
    return Fault(Verdict.WRONG_CODE, "the connection was cut, and no terminal event told why (STR-14)")


def _body(reading: Reading, answer: Answer, *, may_be_whole: bool, stream: bool) -> Iterator[Fault]:
    status = answer.status
    if answer.end == "late":
        yield Fault(Verdict.HANG, "the body did not end in the time allowed")
    elif answer.end != "complete":
        yield Fault(Verdict.WRONG_CODE, f"the body of a {status} was cut, and nothing told why")
    elif reading.said is not None:
        verdict = Verdict.FALSE_ALARM if may_be_whole else Verdict.SILENT
        yield Fault(verdict, f"a {status} has an error for a body (ERR-2)")
    elif reading.garbage is not None and stream:
        yield Fault(
            Verdict.SILENT, f"a stream was asked for, and a {status} came that is {answer.content_type or 'bare'}"
        )
    elif reading.garbage is not None:
        yield Fault(Verdict.SILENT, f"the body of a {status} is no answer")
    elif reading.flaw is not None and reading.flaw.code != Code.UNKNOWN_FINISH_REASON:
        yield Fault(Verdict.SILENT, f"a {status} was sent, and yet {reading.flaw.message}")
    elif not may_be_whole:
        yield Fault(Verdict.SILENT, f"a failure was answered with a {status} as if it were whole")


def _content(expect: Mapping[str, Any], reading: Reading) -> Iterator[Fault]:
    """Whether what came is what was sent: a changed answer that says it is whole is a lie too."""
    tracker = reading.tracker
    texts = {str(index): text for index, text in tracker.texts.items()}
    wanted = expect.get("text")
    if isinstance(wanted, Mapping):
        wanted = wanted["repeat"] * wanted["times"]
    if wanted is not None and tracker.text != wanted:
        yield Fault(Verdict.SILENT, f"the text is {_short(tracker.text)}, not {_short(wanted)}")
    for index, text in expect.get("texts", {}).items():
        if texts.get(index, "") != text:
            yield Fault(Verdict.SILENT, f"choice {index} says {_short(texts.get(index, ''))}, not {_short(text)}")
    reasons = {str(index): reason for index, reason in tracker.finish_reasons.items()}
    for index, allowed in expect.get("finish_reasons", {}).items():
        if reasons.get(index) not in as_list(allowed):
            named = " or ".join(map(repr, as_list(allowed)))
            yield Fault(Verdict.SILENT, f"the finish_reason of choice {index} is {reasons.get(index)!r}, not {named}")
    usage = expect.get("usage")
    if usage is not None and (tracker.usage is None or (usage is not True and usage.items() - tracker.usage.items())):
        told = "missing" if tracker.usage is None else "another than the engine's"
        yield Fault(Verdict.DETAIL, f"usage is {told}")
    if "tool_calls" in expect:
        calls = [{"id": c.id, "name": c.name, "arguments": c.raw_arguments} for c in tracker.tool_calls]
        asked = expect["tool_calls"]
        if [{n: c[n] for n in w} for w, c in zip(asked, calls, strict=False)] != asked or len(calls) != len(asked):
            yield Fault(Verdict.SILENT, f"the tool calls are {json.dumps(calls)}, not {json.dumps(asked)}")


def _plain(expect: Mapping[str, Any], answer: Answer) -> Iterator[Fault]:
    if answer.end not in ("complete", "left"):
        yield Fault(Verdict.WRONG_CODE, "the answer was cut")
    if expect.get("empty") and answer.body:
        yield Fault(Verdict.DETAIL, "the answer has a body")
    if "body" in expect:
        try:
            body = json.loads(bytes(answer.body))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            yield Fault(Verdict.WRONG_CODE, "the body is no JSON object")
            return
        for name, value in expect["body"].items():
            if name not in body or (value is not None and body[name] != value):
                yield Fault(Verdict.WRONG_CODE, f"the body's {name} is {body.get(name)!r}, not {value!r}")


def _times(expect: Mapping[str, Any], answer: Answer) -> Iterator[Fault]:
    first = expect.get("first_event_within_ms")
    if first is not None and (not answer.event_times or answer.event_times[0] - answer.started_at > first / 1000):
        yield Fault(Verdict.DETAIL, f"no event within {first} ms: it is held back until the engine sends more")


def _short(text: str) -> str:
    return repr(text) if len(text) <= 60 else f"{text[:50]!r}… ({len(text)} characters)"
