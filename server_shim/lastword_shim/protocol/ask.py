"""What a request asks for: what its route tells, and what its body says, as far as the shim needs it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from lastword._classify import ErrorInfo, make_error
from lastword._codes import Code
from lastword._completeness import expected_choices
from lastword_shim.protocol.parsing import uncollected
from lastword_shim.protocol.routes import OPERATIONS, Route
from lastword_shim.protocol.wire import CHAT, COMPLETIONS, MESSAGES, OTHER, RESPONSES

_MAX_TOKENS: Final = {
    CHAT: ("max_completion_tokens", "max_tokens"),
    COMPLETIONS: ("max_tokens",),
    RESPONSES: ("max_output_tokens",),
    MESSAGES: ("max_tokens",),
}
_MAX_DIGITS: Final = 16
_MAX_NAME: Final = 200
_MOST: Final = 2**53 - 1
"""Tokens that can be asked for; more is the same, and not every reader of a record can hold it."""
_WHOLE: Final = re.compile(r"\+?\d+(?:_\d+)*(?:\.0*)?", re.ASCII)
_TRUE: Final = frozenset({"1", "true", "t", "yes", "y", "on"})


@dataclass(frozen=True, slots=True)
class Ask:
    """What the body asks for, as far as the shim needs it."""

    kind: str = OTHER
    operation: str | None = None
    """What it asks of the engine, as `Route` has it."""
    judged: bool = False
    """Whether it is known when its answer is whole; of `OTHER` never."""
    model: str | None = None
    stream: bool = False
    background: bool = False
    """Whether it is meant to go on after its answer, whoever listens (Responses)."""
    choices: int = 1
    max_tokens: int | None = None
    whole_is_judged: bool = True
    """False on a route that serves other tasks too, whose whole answers look otherwise."""

    @property
    def works(self) -> bool:
        """Whether it makes the engine work, so that limits hold for it."""
        return self.operation is not None

    @classmethod
    def before_body(cls, route: Route) -> Ask:
        """As much as the route tells; one that serves several tasks may turn out not to be judged."""
        return cls(route.speaks, route.operation, judged=route.judged or route.sniffed)

    @classmethod
    def read(cls, route: Route, body: bytes, content_type: str) -> Ask | ErrorInfo:
        """Look at a body that is read whole; an error if it is not JSON though it says so."""
        with uncollected():
            return cls._read(route, body, content_type)

    @classmethod
    def _read(cls, route: Route, body: bytes, content_type: str) -> Ask | ErrorInfo:
        untold = cls(route.speaks, route.operation, judged=route.judged)
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError) as error:
            if content_type.partition(";")[0].strip().lower() != "application/json":
                return untold  # the engine has its own words for that
            return _not_json(error)
        if not isinstance(parsed, dict):
            return untold
        kind = route.speaks
        if route.sniffed:
            kind = CHAT if "messages" in parsed else COMPLETIONS if "prompt" in parsed else OTHER
        model = parsed.get("model")
        return cls(
            kind=kind,
            operation=OPERATIONS.get(kind, route.operation) if route.sniffed else route.operation,
            judged=kind != OTHER,
            model=_name(model) if isinstance(model, str) else None,
            stream=_is_true(parsed.get("stream")),
            background=kind == RESPONSES and _is_true(parsed.get("background")),
            choices=expected_choices(parsed),
            max_tokens=_explicit(parsed, _MAX_TOKENS.get(kind, ())),
            whole_is_judged=not route.sniffed,
        )


def _explicit(body: dict[str, Any], names: tuple[str, ...]) -> int | None:
    """The first of ``names`` that the body gives; as the engine does, null counts as absent."""
    given = next((body[name] for name in names if body.get(name) is not None), None)
    if isinstance(given, str) and len(given) < _MAX_DIGITS and _WHOLE.fullmatch(given.strip()):
        given = float(given)  # engines that validate loosely take "16" and 16.0
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    return min(given, _MOST) if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None


def _name(given: str) -> str:
    """A model's name as records and traces can hold it: JSON's half characters are none."""
    return given[:_MAX_NAME].encode("utf-8", "replace").decode()


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
