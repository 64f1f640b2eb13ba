"""Who gets in: what a request asks for, how large it may be, and how many may be at work or wait.

Everything here runs when the application first asks for the body, for by then it has let the caller in: somebody
without credentials is answered before and costs nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from lastword._classify import ErrorInfo, make_error
from lastword._codes import CODES, Code
from lastword._completeness import expected_choices
from lastword_shim._terminal import CHAT, COMPLETIONS, MESSAGES, OTHER, RESPONSES

_KINDS: Final = {
    "/v1/chat/completions": CHAT,
    "/v1/completions": COMPLETIONS,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
    "/invocations": "",  # SageMaker's one route for several: the body tells which
}
_MAX_TOKENS: Final = {
    CHAT: ("max_completion_tokens", "max_tokens"),
    COMPLETIONS: ("max_tokens",),
    RESPONSES: ("max_output_tokens",),
    MESSAGES: ("max_tokens",),
}
_MAX_DEADLINE_DIGITS: Final = 12
_MAX_DIGITS: Final = 16
_WHOLE: Final = re.compile(r"\+?\d+(?:_\d+)*(?:\.0*)?", re.ASCII)
_TRUE: Final = frozenset({"1", "true", "t", "yes", "y", "on"})


def kind_of(method: str, path: str) -> str:
    """Which protocol a route speaks; `OTHER` for those whose answers are not followed."""
    return _KINDS.get(path.rstrip("/"), OTHER) if method == "POST" else OTHER


def is_generation(kind: str) -> bool:
    """Whether requests of this kind make the engine generate, so that limits and timers apply."""
    return kind != OTHER


@dataclass(frozen=True, slots=True)
class Ask:
    """What the body asks for, as far as the shim needs it."""

    kind: str = OTHER
    model: str | None = None
    stream: bool = False
    choices: int = 1
    max_tokens: int | None = None
    whole_is_judged: bool = True
    """False on a route that serves other tasks too, whose whole answers look otherwise."""

    @classmethod
    def read(cls, kind: str, body: bytes, content_type: str) -> Ask | ErrorInfo:
        """Parse a generation request; an error if the body is not JSON though it says so."""
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError) as error:
            if content_type.partition(";")[0].strip().lower() != "application/json":
                return cls(kind=kind or OTHER)  # the engine has its own words for that
            return _not_json(error)
        if not isinstance(parsed, dict):
            return cls(kind=kind or OTHER)
        several = not kind
        if several:
            kind = CHAT if "messages" in parsed else COMPLETIONS if "prompt" in parsed else OTHER
        model = parsed.get("model")
        return cls(
            kind=kind,
            model=model[:200] if isinstance(model, str) else None,
            stream=_is_true(parsed.get("stream")),
            choices=expected_choices(parsed),
            max_tokens=_explicit(parsed, _MAX_TOKENS.get(kind, ())),
            whole_is_judged=not several,
        )


class Slots:
    """At most ``max_inflight`` exchanges at work, at most ``max_queued`` waiting, first come first served."""

    def __init__(self, max_inflight: int | None, max_queued: int | None) -> None:
        self._max_inflight = max_inflight
        self._max_queued = max_queued if max_queued is not None or max_inflight is None else 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._inside = 0
        self._mean_seconds = 1.0

    def full(self, *, in_engine_queue: int) -> bool:
        """Whether one more would have to be refused; ``in_engine_queue`` counts those without a token yet."""
        if self._max_queued is None:
            return False
        if self._max_inflight is None:
            return in_engine_queue >= self._max_queued
        return self._inside >= self._max_inflight and len(self._waiting) >= self._max_queued

    @property
    def pause(self) -> float:
        """Seconds until a place should be free: what waits, at the pace of the last answers (1 to 60 s)."""
        lanes = self._max_inflight or max(self._inside, 1)
        return min(max(1.0, (len(self._waiting) + 1) * self._mean_seconds / lanes), 60.0)

    def enter(self) -> asyncio.Future[None]:
        """Take a place, or stand in line for one: done once it is there.  At once, so that `full` counts it from now on."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._max_inflight is None or (self._inside < self._max_inflight and not self._waiting):
            self._inside += 1
            place.set_result(None)
        else:
            self._waiting.append(place)
        return place

    def leave(self, place: asyncio.Future[None], seconds: float) -> None:
        """Give a place up, to the first in line if there is one, or the wait for it; ``seconds`` is how long it was used."""
        if not place.done():
            self._waiting.remove(place)
            return
        self._mean_seconds += 0.2 * (seconds - self._mean_seconds)
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self._inside -= 1


def overloaded() -> ErrorInfo:
    """No place to wait in."""
    return make_error(Code.QUEUE_OVERLOADED, CODES[Code.QUEUE_OVERLOADED].brief, origin="shim")


def too_large(limit: int) -> ErrorInfo:
    """A body over ``max_body_bytes``."""
    message = f"The request body is larger than the {limit} bytes that this server takes."
    return make_error(Code.REQUEST_TOO_LARGE, message, origin="shim", details={"max_body_bytes": limit})


def declared_length(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """The ``content-length``, 0 where there is none."""
    values = [value for name, value in headers if name == b"content-length"]
    return int(values[0]) if values and values[0].isdigit() else 0


def read_deadline(text: str | None) -> int | ErrorInfo | None:
    """``request-timeout-ms``: milliseconds from receipt, None where absent (HDR rules)."""
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DEADLINE_DIGITS and int(text) > 0:
        return int(text)
    message = "The header request-timeout-ms must be a positive whole number of milliseconds."
    return make_error(Code.INVALID_REQUEST_ERROR, message, origin="shim", param="request-timeout-ms")


def _explicit(body: dict[str, Any], names: tuple[str, ...]) -> int | None:
    """The first of ``names`` that the body gives; as the engine does, null counts as absent."""
    given = next((body[name] for name in names if body.get(name) is not None), None)
    if isinstance(given, str) and len(given) < _MAX_DIGITS and _WHOLE.fullmatch(given.strip()):
        given = float(given)  # engines that validate loosely take "16" and 16.0
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None


def _is_true(given: Any) -> bool:
    """As loosely as engines read it."""
    return given in (True, 1) or (isinstance(given, str) and given.lower() in _TRUE)


def _not_json(error: Exception) -> ErrorInfo:
    where: dict[str, int] = {}
    what = ""
    if isinstance(error, json.JSONDecodeError):
        where = {"line": error.lineno, "column": error.colno}
        what = f": {error.msg} (line {error.lineno}, column {error.colno})"
    elif isinstance(error, UnicodeDecodeError):
        where = {"byte": error.start}
        what = f": byte {error.start} is not UTF-8"
    message = f"The request body is not valid JSON{what}."
    return make_error(Code.INVALID_REQUEST_ERROR, message, origin="shim", details=where)
