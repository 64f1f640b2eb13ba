"""What an error says: its shape, code and status, and that its words tell no more and no less than they should (ERR, HDR)."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lastword._classify import ErrorInfo, classify_frame, classify_response, is_request_id
from lastword._codes import CODES
from lastword.conformance._faults import Fault
from lastword.conformance._results import Verdict
from lastword.conformance._schemas import violations
from lastword.conformance.server._exchange import Answer

_LONGEST_HINT: Final = 120  # seconds (HDR-6)
_NUMBER: Final = re.compile(r"(?<![\w.-])-?(?:0|[1-9]\d*)(?:\.\d+)?(?![\w.]*\w)")  # and not part of a name
_COUNT: Final = re.compile(r"[0-9]{1,15}")
_ROOTS: Final = "home|root|Users|usr|opt|var|tmp|etc|srv|mnt|proc|dev|app|workspace"
_LEAKS: Final = (
    (re.compile(r"Traceback \(most recent call last\)|\bFile \"|\bline \d+, in \w"), "a stack trace"),
    (re.compile(r"(?<![\w:/.<])/(?:[\w.@+~-]+/)+[\w@+~-]+\.\w{1,5}\b|\b[A-Za-z]:\\\w"), "a file path"),
    (re.compile(rf"(?<![\w:/.<])/(?:{_ROOTS})/\w"), "a file path"),
    (re.compile(r"\b0x[0-9a-fA-F]{6,}\b|<[^<>]{1,200} at 0x"), "a memory address"),
    (re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?![\d.])|\blocalhost:\d+"), "a network address"),
    (re.compile(r"\bCUDA\b|\bNCCL\b|\bcuBLAS\b"), "a driver's text"),
)
_GUARDED: Final = {
    "x-request-id": "HDR-4",
    "x-should-retry": "HDR-5",
    "retry-after": "HDR-5",
    "retry-after-ms": "HDR-5",
}
_COMPARED: Final = ("category", "retryable", "param", "retry_after_ms")


@dataclass(frozen=True, slots=True)
class Said:
    """An error that the server sent: as the body of an answer (``status``), or as an event of a stream (None)."""

    value: Any  # parsed JSON, or text
    status: int | None
    info: ErrorInfo | None  # how a receiver reads it that knows the dialects of servers
    frame: Mapping[str, Any] | None = None  # the event that it came in, where events have names

    @property
    def error(self) -> Mapping[str, Any]:
        """The contract's ``error`` object; empty if it is none."""
        inner = self.value.get("error") if isinstance(self.value, Mapping) else None
        return inner if isinstance(inner, Mapping) else {}

    @property
    def code(self) -> str | None:
        """The code as said, or as read."""
        own = self.error.get("code")
        return own if isinstance(own, str) and own in CODES else self.info.code if self.info else None


def said_in_body(answer: Answer) -> Said:
    """The error of an HTTP answer."""
    body = bytes(answer.body)
    info = classify_response(answer.status or 500, dict(answer.headers), body)
    try:
        return Said(json.loads(body), answer.status, info)
    except (ValueError, RecursionError):
        return Said(body.decode("utf-8", "replace"), answer.status, info)


def said_in_event(data: str, name: str, *, frame: Mapping[str, Any] | None = None) -> Said:
    """The error of an event; ``frame`` is the event of another protocol that it stood in."""
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        value = data
    return Said(value, None, classify_frame(name, value), frame)


def judge_error(
    said: Said, expect: Mapping[str, Any], answer: Answer, *, name: str = "", rules: frozenset[str] = frozenset()
) -> Iterator[Fault]:
    """Hold an error against what a vector expects and the rules demand; ``name`` is the event's."""
    accepted = as_list(expect.get("code", ()))
    shape = violations("error", said.value) if isinstance(said.value, Mapping) else ["error: it is no JSON object"]
    if name:
        shape.append(f"error: the event is named {name!r}, where it must have no name")
    if said.frame is not None:
        shape += violations("stream-error-event", said.frame)
    if said.status is not None and "MSG-3" in rules:
        shape += violations("stream-error-event", {"event": "error", "data": said.value})
    if shape:
        yield _of_another_shape(said, accepted, shape[0].removeprefix("error: "))
    else:
        yield from _contract_error(said, expect, accepted, answer)
    yield from _message(said, contract=not shape)
    if said.status is not None:
        yield from _hints(said, answer, rules)


def judge_headers(answer: Answer, expect: Mapping[str, Any], rules: frozenset[str]) -> Iterator[Fault]:
    """What every answer must carry, where the vector names the rule, and what this one must."""
    ids = answer.values("x-request-id")
    if "HDR-4" in rules and len(ids) != 1:
        yield Fault(Verdict.DETAIL, f"the answer has {'no' if not ids else 'several'} x-request-id (HDR-4)")
    elif "HDR-4" in rules and not is_request_id(ids[0]):
        yield Fault(Verdict.DETAIL, "the answer's x-request-id is fit for nothing (HDR-4)")
    for header, rule in expect.items():
        values = answer.values(header)
        if not values and rule is not None and _GUARDED.get(header) in rules:
            continue  # that it is missing has been said
        value = values[0] if len(values) == 1 else None
        if len(values) > 1:
            yield Fault(Verdict.DETAIL, f"{header} came {len(values)} times")
        elif (value is not None) if rule is None else not _fits(value, rule):
            wanted = "absent" if rule is None else rule if isinstance(rule, str) else json.dumps(rule)
            yield Fault(Verdict.DETAIL, f"{header} is {'missing' if value is None else repr(value)}, not {wanted}")


def as_list(value: Any) -> list[Any]:
    """What may be written as one value or as several."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _of_another_shape(said: Said, accepted: list[str], why: str) -> Fault:
    """In the words of some other server, or of the contract's and wrong."""
    read = said.info.code if said.info else "nothing"
    if read not in accepted:
        return Fault(Verdict.WRONG_CODE, f"the error reads as {read}, not {' or '.join(accepted)} (ERR-1)")
    if said.error.get("contract"):
        return Fault(Verdict.WRONG_CODE, f"the error is not in the contract's shape: {why} (ERR-1)")
    return Fault(Verdict.DETAIL, f"the error is in words of its own, readable as {read} (ERR-1)")


def _contract_error(said: Said, expect: Mapping[str, Any], accepted: list[str], answer: Answer) -> Iterator[Fault]:
    error = said.error
    code = str(error["code"])
    known = CODES.get(code)
    if code not in accepted or known is None:
        yield Fault(Verdict.WRONG_CODE, f"code is {code}, not {' or '.join(accepted)}")
    elif said.status is not None and known.http_statuses and said.status not in known.http_statuses:
        yield Fault(Verdict.WRONG_CODE, f"status {said.status} is none that the registry gives for {code} (ERR-2)")
    for member in _COMPARED:
        if member in expect and error.get(member) != expect[member]:
            yield Fault(Verdict.DETAIL, f"error.{member} is {error.get(member)!r}, not {expect[member]!r}")
    for member, value in expect.get("details", {}).items():
        if error["details"].get(member) != value:
            yield Fault(Verdict.DETAIL, f"details.{member} is {error['details'].get(member)!r}, not {value!r}")
    for part in expect.get("message_contains", ()):
        if part not in error["message"]:
            yield Fault(Verdict.DETAIL, f"the message lacks {part!r}")
    for part in expect.get("message_lacks", ()):
        if part in error["message"]:
            yield Fault(Verdict.DETAIL, f"the message tells {part!r}")
    if answer.values("x-request-id") not in ([], [error["request_id"]]):
        yield Fault(Verdict.DETAIL, "error.request_id is not the answer's x-request-id")


def _message(said: Said, *, contract: bool) -> Iterator[Fault]:
    message = str(said.error.get("message") or (said.info.message if said.info else ""))
    for what in dict.fromkeys(what for pattern, what in _LEAKS if pattern.search(message)):
        yield Fault(Verdict.DETAIL, f"the message tells {what} (ERR-4)")
    if contract:
        told = set(_numbers(said.error["details"]))
        if missing := [text for text in _NUMBER.findall(message) if float(text) not in told]:
            yield Fault(Verdict.DETAIL, f"the message has {', '.join(missing)}, and details do not (ERR-3)")


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int | float):
        with contextlib.suppress(OverflowError):  # no float, and so no number that a message has
            yield float(value)
    elif isinstance(value, str):
        yield from map(float, _NUMBER.findall(value))


def _hints(said: Said, answer: Answer, rules: frozenset[str]) -> Iterator[Fault]:
    """The headers of an error."""
    should, seconds, milliseconds = (
        ", ".join(answer.values(name)) for name in ("x-should-retry", "retry-after", "retry-after-ms")
    )
    retryable = said.error.get("retryable")
    if retryable is None and said.info is not None:
        retryable = said.info.retryable
    if "HDR-5" in rules:
        if should not in ("true", "false"):
            yield Fault(Verdict.DETAIL, f"x-should-retry is {should or 'missing'} (HDR-5)")
        elif should == "true" and not retryable:
            yield Fault(Verdict.DETAIL, "x-should-retry is true for an error that is not retryable (HDR-5)")
        if retryable and not (seconds and milliseconds):
            lacking = " and ".join(n for n, v in (("retry-after", seconds), ("retry-after-ms", milliseconds)) if not v)
            yield Fault(Verdict.DETAIL, f"a retryable error without {lacking} (HDR-5)")
    if "HDR-6" in rules:
        for name, text, unit in (("retry-after", seconds, 1), ("retry-after-ms", milliseconds, 1000)):
            if text and not (_COUNT.fullmatch(text) and 0 < int(text) <= _LONGEST_HINT * unit):
                yield Fault(Verdict.DETAIL, f"{name} is {text}, not above 0 and at most {_LONGEST_HINT} s (HDR-6)")


def _fits(value: str | None, rule: Any) -> bool:
    if value is None:
        return False
    if isinstance(rule, str):
        return value == rule
    number = float(value) if re.fullmatch(r"-?\d+(\.\d+)?", value) else None
    return not (
        ("pattern" in rule and re.search(rule["pattern"], value) is None)
        or ("not" in rule and value == rule["not"])
        or ("minimum" in rule and (number is None or number < rule["minimum"]))
        or ("maximum" in rule and (number is None or number > rule["maximum"]))
    )
