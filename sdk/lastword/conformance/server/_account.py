"""What a server did, in words that are the same in every run: for reports, and for whoever reads one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lastword._sse import ServerSentEvent
from lastword.conformance._cases import API_KEY
from lastword.conformance._said import steady
from lastword.conformance._trace import BOILERPLATE, script_lines, short
from lastword.conformance.server._exchange import Answer
from lastword.conformance.server._judge import Reading

if TYPE_CHECKING:
    from lastword.conformance.server._engine import Engine
    from lastword.conformance.server._request import Request, Target

_TOLD: Final = ("x-request-id", "x-should-retry", "retry-after", "retry-after-ms")
_ENDS: Final = {
    "complete": "the body ends",
    "truncated": "the connection closes in the middle of the body",
    "reset": "the connection is reset",
    "closed": "the connection closes, and there was no answer",
    "refused": "the connection is refused",
    "late": "nothing more in the time allowed",
    "left": "the client leaves",
    "endless": "it goes on and on: the client gives up",
}
_WIDTH: Final = 200  # characters of one line


def said(reading: Reading, answer: Answer, generated: Mapping[str, str], known: str) -> dict[str, Any]:
    """Status, terminal and error."""
    terminal = reading.terminals[0] if reading.terminals else "none"
    told: dict[str, Any] = {"status": answer.status}
    if answer.is_stream:
        told["terminal"] = terminal if len(reading.terminals) < 2 else " then ".join(reading.terminals)
    if answer.end != "complete":
        told["end"] = _ENDS[answer.end]
    if reading.said is not None:
        told["code"] = reading.said.code
        told["error"] = steady(reading.said.value, known, generated)
    return told


def generated(target: Target, engine: Engine | None, request: Request, answer: Answer) -> dict[str, str]:
    """Values of this one run, and what is written in their place."""
    made = {engine.address: "$engine", str(engine.port): "$engine_port"} if engine else {}
    made |= {target.address: "$server"}
    made |= {target.api_key: "$key"} if target.api_key not in (API_KEY, "") else {}
    own = {value: "$made" for value in answer.values("x-request-id") if value and value != request.request_id}
    return own | made


def wire(
    vector: Mapping[str, Any], request: Request, answer: Answer, engine: Engine | None, made: Mapping[str, str]
) -> tuple[str, ...]:
    """The exchange: our request, what the engine did, what came back."""
    known = json.dumps(vector)
    lines = [f"> {request.title}", *_engine_lines(vector, engine)]
    lines += [steady(line, known, made) for line in _answer(answer, scripted=engine is not None)]
    return tuple(_short(line) for line in lines)


def trace(answer: Answer, engine: Engine | None) -> tuple[str, ...]:
    """The same with milliseconds since the request."""
    logged = [(at, text) for at, text in answer.log]
    for entry in (engine.log or ()) if engine else ():
        text = entry.data.decode("utf-8", "backslashreplace").replace("\r\n", " ⏎ ").replace("\n", " ⏎ ").strip(" ⏎")
        logged.append((entry.at, f"        engine: {entry.what} {entry.text} {text}".rstrip()))
    return tuple(_short(f"{(at - answer.started_at) * 1000:>7.0f} ms  {text}") for at, text in sorted(logged))


def _engine_lines(vector: Mapping[str, Any], engine: Engine | None) -> Iterator[str]:
    if engine is None:
        return
    if vector.get("listening") == "no":
        yield "engine: nothing listens at its address"
    elif not engine.requests:
        yield "engine: was not asked"
    script: Sequence[Mapping[str, Any]] = vector.get("engine", ())
    for number in range(len(engine.requests)):
        if number >= len(script):
            yield (
                "engine: was asked more often than its script allows"
                if "load" not in vector
                else "engine: the same again"
            )
            return
        for line in script_lines(script[number]):
            yield f"engine: {line}"


def _answer(answer: Answer, *, scripted: bool) -> Iterator[str]:
    if answer.status is not None:
        yield f"< HTTP {answer.status} {answer.content_type}".rstrip()
        for name in _TOLD:
            yield from (f"< {name}: {value}" for value in answer.values(name))
        if answer.is_stream:
            yield from _events(answer.events, scripted=scripted)
        elif answer.status >= 400 or scripted:
            body = _without_boilerplate(bytes(answer.body).decode("utf-8", "replace"))
            yield f"< {body[: 4 * _WIDTH]}" if body else "< (an empty body)"
    yield f"< ({_ENDS[answer.end]})"


def _events(events: Sequence[ServerSentEvent], *, scripted: bool) -> Iterator[str]:
    """A real engine's words differ from run to run: only that there were some is told."""
    folded = False
    for data, name in events:
        own = not scripted and '"choices"' in data
        if not own:
            yield f"< {f'event: {name} ⏎ ' if name else ''}data: {_without_boilerplate(data)}"
        elif not folded:
            yield "< data: chunks"
        folded = own


def _without_boilerplate(text: str) -> str:
    """A chunk or an answer without its generated id and time, and without what all of them have."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(document, dict) or "choices" not in document:
        return text
    kept = {name: value for name, value in document.items() if name not in BOILERPLATE}
    return json.dumps(kept, ensure_ascii=False)


def _short(line: str) -> str:
    return short(line.replace("\r", "").replace("\n", " ⏎ "), _WIDTH)
