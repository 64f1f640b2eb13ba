"""Plays client vectors: a scripted server on a real socket, a client that is asked for one call, and what it came to.

Who is asked is the caller's: an adapter in another process (``_pool``), or a function in this one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lastword.conformance._cases import API_KEY
from lastword.conformance._faults import Fault, settle
from lastword.conformance._outcomes import unreported
from lastword.conformance._results import Case, CaseResult, Verdict
from lastword.conformance._said import steady
from lastword.conformance._schemas import violations
from lastword.conformance._trace import trace, wire
from lastword.conformance.client._adapter import AdapterFault
from lastword.conformance.client._judge import observed, reported
from lastword.testing import ScriptedServer

Ask = Callable[[Mapping[str, Any], float], Mapping[str, Any]]
"""Has a client make one call (``schemas/adapter.json``: case) in so many seconds, and gives its answer: ``{"result": …}``
or ``{"unable": …}``. ``AdapterFault`` if there is none, and then the client is gone."""

_MARGIN: Final = 10.0  # s; a client that has not answered by then does not wait for a slow machine
_LATE: Final = 2.0  # s after `within_ms` in which an answer still comes; more is not worth the wait
_BACK_OFF: Final = 9.0  # s that a client of its own mind may wait before a retry
_PER_BYTE: Final = 0.0002  # s for a write of its own
_CALL: Final[Mapping[str, Any]] = {
    "endpoint": "chat",
    "retries": 0,
    "timeouts": {},
    "cancel": None,
    "repeat": 1,
    "profile": None,
    "max_event_bytes": None,
}


@dataclass(frozen=True, slots=True)
class _Told:
    """What came of asking: an answer, or a fault; and after how many seconds."""

    answer: Mapping[str, Any]
    fault: Fault | None
    seconds: float


def play_client(case: Case, ask: Ask) -> CaseResult:
    """Play one client vector with the client that ``ask`` speaks for, and judge it."""
    vector = case.vector
    with _address(case) as (base_url, server):
        told = _ask(case, base_url, ask)
    expect, result = vector["expect"], _with_text(vector, told.answer.get("result", {}))
    known = json.dumps(vector, ensure_ascii=False)
    calm = partial(steady, known=known, generated=_generated(server, known))
    verdict, reasons = settle(_faults(expect, told, result, server, calm))
    return CaseResult(
        case,
        verdict,
        reasons,
        said=calm(told.answer["result"]) if result else None,
        wire=wire(vector, case.segmentation, server),
        trace=trace(server.log or ()) if server else (),
        seconds=told.seconds,
        unreported=unreported(expect, result) if result else (),
    )


def call_of(vector: Mapping[str, Any]) -> dict[str, Any]:
    """Give a vector's call with every default filled in, as adapters read it."""
    call = {**_CALL, **vector["call"]}
    body = call.pop("body", {})
    if call["endpoint"] == "models":
        request: dict[str, Any] = {}
    elif call["endpoint"] == "completions":
        request = {"model": "m", "prompt": "hi", "stream": call["stream"], **body}
    else:
        messages = [{"role": "user", "content": "hi"}]
        request = {"model": "m", "messages": messages, "stream": call["stream"], **body}
    return {**call, "request": request}


def limit_of(case: Case) -> float:
    """Seconds after which a client that did not answer hangs."""
    expect, call = case.vector["expect"], case.vector["call"]
    if "within_ms" in expect:
        return max(float(expect["within_ms"]) / 1000, _own_deadline(call)) + _LATE
    exchanges = case.vector["server"]
    steps = [step for each in exchanges for step in (*each.get("before", ()), *each["steps"])]
    silent = sum(step.get("delay_ms", 0) + step.get("within_ms", 0) for step in steps) / 1000
    timers = sum(each or 0 for each in call.get("timeouts", {}).values())
    waits = (
        max(len(exchanges) - call.get("repeat", 1), 0) * _BACK_OFF + call.get("cancel", {}).get("after_ms", 0) / 1000
    )
    writes = sum(len(json.dumps(each)) for each in steps) if case.segmentation.isdigit() else 0
    return float(silent + timers + waits + writes * _PER_BYTE + _MARGIN)


def _own_deadline(call: Mapping[str, Any]) -> float:
    """Seconds after which the call ends by its own deadline: an answer until then is late, and the caller did not hang."""
    total = call.get("timeouts", {}).get("total") or 0
    return 0.0 if "cancel" in call else float(total)


@contextlib.contextmanager
def _address(case: Case) -> Iterator[tuple[str, ScriptedServer | None]]:
    """Where the client finds the vector's server: a scripted one, one whose backlog is full, or none."""
    listening = case.vector.get("listening", "yes")
    if listening == "no":
        with socket.socket() as taken:  # bound, not listening: nobody else can get the port, and connecting is refused
            taken.bind(("127.0.0.1", 0))
            yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1", None
        return
    with ScriptedServer(
        case.vector["server"],
        segmentation=case.segmentation,
        accepting="no" if listening == "full" else "yes",
        strict=False,
        keep_log=True,
    ) as server:
        yield server.base_url, server


def _ask(case: Case, base_url: str, ask: Ask) -> _Told:
    message = {"base_url": base_url, "api_key": API_KEY, "call": call_of(case.vector)}
    limit = limit_of(case)
    within = case.vector["expect"].get("within_ms")
    late = f"no answer within the {within} ms that the vector gives" if within else f"no answer within {limit:.0f} s"
    started = time.monotonic()
    try:
        answer = ask(message, limit)
    except AdapterFault as fault:
        reason = late if fault.verdict is Verdict.HANG else fault.reason
        return _Told({}, Fault(fault.verdict, reason), time.monotonic() - started)
    seconds = time.monotonic() - started
    if within is None or seconds * 1000 <= within:
        return _Told(answer, None, seconds)
    deadline = _own_deadline(case.vector["call"])
    if deadline and seconds <= deadline + _LATE / 2:
        return _Told(answer, Fault(Verdict.DETAIL, f"the answer came later than {within} ms"), seconds)
    return _Told(answer, Fault(Verdict.HANG, late), seconds)


def _faults(
    expect: Mapping[str, Any],
    told: _Told,
    result: dict[str, Any],
    server: ScriptedServer | None,
    calm: Callable[[str], str],
) -> Iterator[Fault]:
    if told.fault is not None:
        yield told.fault
    if "unable" in told.answer:
        yield Fault(Verdict.UNABLE, f"the adapter could not try: {calm(told.answer['unable'])}")
    elif not told.answer:  # the client is gone: what it did with its socket, or did not do any more, is no finding
        if server is not None and len(server.requests) > expect["requests"]:
            yield Fault(Verdict.OVER_RETRY, f"the server counted more than {expect['requests']} requests")
    else:
        if wrong := violations("outcome", result):
            yield Fault(Verdict.CRASH, calm(f"the result is no outcome of the contract: {wrong[0]}"))
        else:
            gave_up = server is not None and 0 < len(server.requests) < expect["requests"]  # it met the first, at least
            account = reported(expect, result, gave_up=gave_up)
            yield from (Fault(fault.verdict, calm(fault.reason)) for fault in account)
        if server is not None:
            yield from observed(expect, server, calm, claims_whole=result.get("outcome") == "completed")


def _with_text(vector: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """A client that streamed, or that says it has a whole answer, could have text: it says so or it has none."""
    could = vector["call"]["stream"] or result.get("outcome") == "completed"
    return {"text": "", **result} if result and could and "text" in vector["expect"] else dict(result)


def _generated(server: ScriptedServer | None, known: str) -> dict[str, str]:
    """The request ids that the client made up."""
    headers = (header for request in (server.requests if server else ()) for header in request.headers.items())
    return {value: "$request_id" for name, value in headers if name.endswith("request-id") and value not in known}
