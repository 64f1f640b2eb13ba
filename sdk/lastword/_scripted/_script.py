"""What a scripted server is to send: the vector format of exchanges, read and checked.

An exchange is a mapping (JSON object) that answers one request:

``status``   int, or absent: then no response head is sent and the steps are written raw
``headers``  name -> value; a list for a repeated header; null leaves a default one out; ``{"http_date_in_s": n}`` is an
             HTTP date n seconds after it is sent
``framing``  ``chunked`` (default) | ``content-length`` | ``close``
``before``   steps played before the response head: delays and waits only
``steps``    what follows the head, in order; the last one may be an ``end`` (default ``complete``)
``then``     ``close``: the connection is closed after the whole answer, without a word about it in the head
``request``  what the request must look like: ``method``, ``path``, ``headers``, ``body`` members

A step is one of ``{"data": JSON or string, "event"?: name}`` (one server-sent event), ``{"json": JSON}`` (the bare
document), ``{"text": str}``, ``{"base64": str}``, ``{"repeat": {"text" | "data": …, "times": n}}``,
``{"delay_ms": n}``, ``{"await": "disconnect", "within_ms": n}`` and ``{"end": how}`` with ``how`` one of

``complete``  the body ends as its framing says, the connection stays open for the next request
``truncate``  FIN before the framing is satisfied
``reset``     RST
``stall``     silence with the connection open, until the client leaves
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Final, Literal, TypeAlias, cast, get_args

Framing: TypeAlias = Literal["chunked", "content-length", "close"]
Ending: TypeAlias = Literal["complete", "truncate", "reset", "stall"]


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes of the body; ``final`` where a client may rightly leave after reading them."""

    payload: bytes
    final: bool


@dataclass(frozen=True, slots=True)
class Delay:
    """Silence for ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class AwaitDisconnect:
    """The client must have left within ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class End:
    """How the wire ends; nothing follows it."""

    how: Ending


Step: TypeAlias = Send | Delay | AwaitDisconnect | End


@dataclass(frozen=True, slots=True)
class Exchange:
    """One scripted answer, checked and ready to be played."""

    status: int | None
    headers: tuple[tuple[str, str | int], ...]  # a number: an HTTP date so many seconds ahead
    framing: Framing
    before: tuple[Step, ...]
    steps: tuple[Step, ...]
    closes: bool  # the server closes the connection after the whole answer
    request: Mapping[str, object]

    @property
    def end(self) -> Ending:
        """How the answer ends."""
        last = self.steps[-1]
        return last.how if isinstance(last, End) else "complete"

    @property
    def longest_wait(self) -> float:
        """Seconds that awaited disconnects may take, all together."""
        return sum(step.seconds for step in (*self.before, *self.steps) if isinstance(step, AwaitDisconnect))

    @property
    def chunked(self) -> bool:
        """Whether the body goes out in HTTP chunks."""
        return self.status is not None and ("transfer-encoding", "chunked") in self.headers

    def head(self) -> bytes:
        """Give the response head as sent, or nothing if the exchange has no status."""
        if self.status is None:
            return b""
        lines = [f"HTTP/1.1 {self.status} Scripted"]
        for name, value in self.headers:
            text = formatdate(time.time() + value, usegmt=True) if isinstance(value, int) else value
            lines.append(f"{name}: {text}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


_KEYS: Final = frozenset({"status", "headers", "framing", "before", "steps", "then", "request", "comment"})
_BODYLESS: Final = frozenset({204, 304})
_MISSING_BYTES: Final = 64  # declared and never sent, when a content-length body is to be cut


def parse_exchange(source: Mapping[str, object]) -> Exchange:
    """Check one exchange; raise ``ValueError`` or ``TypeError`` naming what is wrong in it."""
    if unknown := source.keys() - _KEYS:
        raise ValueError(f"exchange: unknown fields {sorted(unknown)}; known are {sorted(_KEYS)}")
    framing = source.get("framing", "chunked")
    if framing not in get_args(Framing):
        raise ValueError(f"exchange: framing {framing!r} is not one of {get_args(Framing)}")
    status = source.get("status")
    if status is not None and not isinstance(status, int):
        raise TypeError(f"exchange: status {status!r} is not a number")
    raw_steps = [_mapping(step, "step") for step in _sequence(source.get("steps", ()), "steps")]
    steps = [step for raw in raw_steps for step in parse_step(raw)]
    if not steps or not isinstance(steps[-1], End):
        steps.append(End("complete"))
    if any(isinstance(step, End) for step in steps[:-1]):
        raise ValueError("exchange: steps follow an end")
    before = tuple(
        s for raw in _sequence(source.get("before", ()), "before") for s in parse_step(_mapping(raw, "step"))
    )
    if any(not isinstance(step, Delay | AwaitDisconnect) for step in before):
        raise ValueError("exchange: only delay_ms and await can come before the response head")
    given = _mapping(source.get("headers", {}), "headers")
    headers = _headers(given)
    if status is not None:
        is_sse = any("data" in raw or "data" in _mapping(raw.get("repeat", {}), "repeat") for raw in raw_steps)
        defaults = _default_headers(status, framing, steps, is_sse=is_sse)
        headers += [pair for pair in defaults if pair[0] not in {name.lower() for name in given}]
    said_close = ("connection", "close") in [(name.lower(), str(value).lower()) for name, value in headers]
    return Exchange(
        status=status,
        headers=tuple(headers),
        framing=cast("Framing", framing),
        before=before,
        steps=tuple(steps),
        closes=status is None or said_close or source.get("then") == "close",
        request=_mapping(source.get("request", {}), "request"),
    )


def parse_step(raw: Mapping[str, object]) -> Iterator[Step]:
    """Turn one step of the vector format into what is played; ``ValueError`` or ``TypeError`` if it is none."""
    match raw:
        case {"data": data}:
            event = raw.get("event", "")
            yield Send(encode_event(data, str(event)), final=bool(event) or _may_be_final(data))
        case {"json": document}:
            yield Send(json.dumps(document).encode(), final=True)
        case {"text": str(text)}:
            yield Send(text.encode(), final=True)
        case {"base64": str(text)}:
            yield Send(base64.b64decode(text, validate=True), final=True)
        case {"repeat": dict(inner)}:
            times = inner["times"]
            for _ in range(times):
                yield from parse_step({key: value for key, value in inner.items() if key != "times"})
        case {"delay_ms": int() | float() as delay}:
            yield Delay(delay / 1000)
        case {"await": "disconnect"}:
            within = raw.get("within_ms", 1000)
            if not isinstance(within, int | float):
                raise TypeError(f"step: within_ms {within!r} is not a number")
            yield AwaitDisconnect(within / 1000)
        case {"end": how}:
            yield End(check_end(how))
        case _:
            raise ValueError(f"step: cannot be played: {dict(raw)!r}")


def check_end(how: object) -> Ending:
    """Give ``how`` if it is one of the four endings; ``ValueError`` that names them if not."""
    if how not in get_args(Ending):
        raise ValueError(f"end: {how!r} is not one of {', '.join(get_args(Ending))}")
    return cast("Ending", how)


def encode_event(data: object, event: str = "") -> bytes:
    """Encode one server-sent event: a string as it is, anything else as JSON."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    lines = [f"event: {event}"] if event else []
    lines += [f"data: {line}" for line in text.split("\n")]
    return ("\n".join(lines) + "\n\n").encode()


def segments(payload: bytes, segmentation: str) -> Iterator[bytes]:
    """Cut bytes into writes: ``event`` and ``whole`` leave them whole, a number is a size in bytes."""
    if not payload:  # an empty HTTP chunk would be the last one
        return
    if segmentation in ("event", "whole"):
        yield payload
        return
    size = int(segmentation)
    for start in range(0, len(payload), size):
        yield payload[start : start + size]


def _may_be_final(data: object) -> bool:
    # An ordinary chunk never ends a stream; [DONE], text, an error or a stranger may.
    return not isinstance(data, dict) or "choices" not in data or "error" in data


def _default_headers(
    status: int, framing: object, steps: Sequence[Step], *, is_sse: bool
) -> list[tuple[str, str | int]]:
    if status in _BODYLESS:
        return []
    content_type = ("content-type", "text/event-stream; charset=utf-8" if is_sse else "application/json")
    if framing == "chunked":
        return [content_type, ("transfer-encoding", "chunked")]
    if framing == "close":
        return [content_type, ("connection", "close")]
    length = sum(len(step.payload) for step in steps if isinstance(step, Send))
    if steps[-1] != End("complete"):
        length += _MISSING_BYTES
    return [content_type, ("content-length", str(length))]


def _headers(source: Mapping[str, object]) -> list[tuple[str, str | int]]:
    pairs: list[tuple[str, str | int]] = []
    for name, value in source.items():
        if isinstance(value, Mapping):
            pairs.append((name, int(str(value["http_date_in_s"]))))
        elif value is not None:
            pairs += [(name, str(each)) for each in (value if isinstance(value, list) else [value])]
    return pairs


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{what}: an object is needed, not {value!r}")
    return value


def _sequence(value: object, what: str) -> Sequence[object]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{what}: a list is needed, not {value!r}")
    return value
