"""The wire in words: as the script has it, the same in every run, and as it was logged, with times."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lastword._scripted._script import parse_exchange

if TYPE_CHECKING:
    from lastword._scripted._player import Logged
    from lastword.testing import ScriptedServer

_WIDTH: Final = 160  # characters of one line
BOILERPLATE: Final = ("id", "object", "created", "model", "system_fingerprint")  # what all chunks and answers have
_USUAL: Final = {"index": 0, "finish_reason": None, "logprobs": None}
_CUTS: Final = {"chunked": "before the last chunk", "content-length": "before the announced length"}
_MUST_LEAVE: Final = "the client must leave"
_LEFT: Final = {"fin": "the client closed (FIN)", "reset": "the client closed (RST)", "closed": "closed"}


def wire(vector: Mapping[str, Any], segmentation: str, server: ScriptedServer | None) -> tuple[str, ...]:
    """What was on the wire of this case, a line for each thing, from the script and what of it was asked for."""
    if server is None:
        return ("nothing listens at the address",)
    if vector.get("listening") == "full":
        return ("the queue of connections is full: connecting hangs",)
    lines = [f"(each write has {segmentation} bytes)"] if segmentation.isdigit() else []
    if not server.requests:
        lines.append("no request came")
    for number, request in enumerate(server.requests, 1):
        lines += [f"… request {number}:"] if number > 1 else []
        if number > len(vector["server"]):
            lines.append("more than the rules allow: answered with HTTP 400")
            continue
        for line in script_lines(vector["server"][number - 1]):
            waits = line.endswith(_MUST_LEAVE)
            lines.append(f"{line}: it {'stays' if request.stayed is not None else 'leaves'}" if waits else line)
            if waits and request.stayed is None:
                break
    return tuple(_folded(lines))


def trace(log: Sequence[Logged]) -> tuple[str, ...]:
    """Give the server's log, in milliseconds since the first connection."""
    if not log:
        return ()
    start = log[0].at
    several = len({entry.connection for entry in log}) > 1
    return tuple(
        f"{(entry.at - start) * 1000:>7.0f} ms  {f'#{entry.connection} ' if several else ''}{_logged(entry)}"
        for entry in log
    )


def _logged(entry: Logged) -> str:
    if entry.what == "opened":
        return "connection opened"
    if entry.what == "client":
        return _LEFT[entry.text]
    if entry.what == "end":
        return f"< end: {entry.text}"
    text = entry.data.decode("utf-8", "backslashreplace").replace("\r\n", " ⏎ ").replace("\n", " ⏎ ").strip(" ⏎")
    whole = "" if entry.size <= len(entry.data) else f" ({entry.size} bytes)"
    return short(f"{'> ' + entry.text + ' ' if entry.what == 'request' else '< '}{text}") + whole


def script_lines(raw: Mapping[str, Any]) -> Iterator[str]:
    """Give an exchange of the vector format in words, a line for each thing that is sent or waited for."""
    exchange = parse_exchange(raw)
    for step in raw.get("before", ()):
        yield from _step(step, "")
    framing = exchange.framing if exchange.status is not None else "bare"
    if exchange.status is not None:
        kind = next((str(value) for name, value in exchange.headers if name.lower() == "content-type"), "")
        until = {"close": ", the body ends with the connection"}.get(framing, "")
        yield f"HTTP {exchange.status} {kind.partition(';')[0]}{until}".rstrip()
        for name, value in raw.get("headers", {}).items():
            if name.lower() != "content-type" and value is not None:
                yield short(f"{name}: {_header(value)}")
    for step in raw["steps"]:
        yield from _step(step, framing)
    if "end" not in raw["steps"][-1]:
        yield from _step({"end": "complete"}, framing)
    if raw.get("then") == "close":
        yield "FIN, without a word about it in the head"


def _header(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"an HTTP date {value['http_date_in_s']} s ahead"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _step(step: Mapping[str, Any], framing: str) -> Iterator[str]:
    match step:
        case {"data": data}:
            event = f"event: {step['event']} ⏎ " if "event" in step else ""
            yield short(f"{event}data: {data if isinstance(data, str) else _brief(data)}")
        case {"json": document}:
            yield short(_brief(document))
        case {"text": str(text)}:
            yield short(json.dumps(text, ensure_ascii=False)) if text else "(an empty body)"
        case {"base64": str(text)}:
            yield short(f"base64 {text}")
        case {"repeat": dict(inner)}:
            once = {name: value for name, value in inner.items() if name != "times"}
            yield from (f"{line} (× {inner['times']})" for line in _step(once, framing))
        case {"delay_ms": delay}:
            yield f"silence of {delay} ms"
        case {"await": _, **rest}:
            yield f"silence: within {rest.get('within_ms', 1000)} ms {_MUST_LEAVE}"
        case {"end": "truncate"}:
            yield f"FIN {_CUTS.get(framing, 'in mid-answer')}"
        case {"end": "reset"}:
            yield "RST"
        case {"end": "stall"}:
            yield "silence, with the connection open"
        case _:
            yield {"close": "FIN", "bare": "FIN", "chunked": "the last chunk"}.get(framing, "the end of the body")


def _brief(data: Any) -> str:
    """An answer, or a chunk of one, without what all of them have."""
    if not isinstance(data, Mapping) or not isinstance(data.get("choices"), list) or not data["choices"]:
        return json.dumps(data, ensure_ascii=False)
    choices = [
        {name: value for name, value in each.items() if name not in _USUAL or _USUAL[name] != value}
        if isinstance(each, Mapping)
        else each
        for each in data["choices"]
    ]
    rest = {name: value for name, value in data.items() if name not in BOILERPLATE}
    return "{…, " + json.dumps({**rest, "choices": choices}, ensure_ascii=False)[1:]


def short(line: str, width: int = _WIDTH) -> str:
    """Cut a line that is too long to be read."""
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _folded(lines: Sequence[str]) -> Iterator[str]:
    """Equal lines that follow each other, as one."""
    previous, times = None, 0
    for line in [*lines, None]:
        if line == previous:
            times += 1
            continue
        if previous is not None:
            yield previous if times == 1 else f"{previous} (× {times})"
        previous, times = line, 1
