"""Requests as a scripted server saw them, and what a script demands of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Received:
    """One request as the server saw it, and what became of its client. Times are ``time.monotonic()`` seconds."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case; the last value of a repeated header
    body: bytes
    connection: int  # 1 for the first accepted connection
    at: float
    ended_at: float | None = None  # when its script was played to the end, or given up
    disconnected_at: float | None = None  # when the client's FIN or RST was seen while it was still being answered
    disconnected_by: str | None = None  # "fin" | "reset"; a client that closes with unread bytes resets
    answered: bool = False  # the whole script of this answer was played
    differences: list[str] = field(default_factory=list)  # from what the script wants the request to be
    unsent: int = 0  # steps that were still to be sent when the client left, though it had no reason to leave yet
    stayed: float | None = None  # s it was given to leave, and did not

    @property
    def problems(self) -> list[str]:
        """What was otherwise than the script says, one sentence each."""
        found = list(self.differences)
        if self.stayed is not None:
            found.append(f"the client did not disconnect within {self.stayed * 1000:.0f} ms")
        if self.unsent:
            found.append(f"the client left with {self.unsent} of its steps still to be sent")
        return found

    @property
    def attempt(self) -> int | None:
        """The client's own count of this try, from ``x-request-attempt``."""
        value = self.headers.get("x-request-attempt", "")
        return int(value) if value.isdigit() else None

    def json(self) -> dict[str, object]:
        """Give the request body as a JSON object; ``ValueError`` or ``TypeError`` if it is none."""
        document = json.loads(self.body)
        if not isinstance(document, dict):
            raise TypeError(f"the request body is not a JSON object: {self.body[:200]!r}")
        return document


def differences(expected: Mapping[str, object], request: Received, first: Received) -> list[str]:
    """Compare a request with an exchange's ``request`` member; one sentence for each difference.

    ``first`` is the first request of the script, for ``{"same_as_first": true}``.
    """
    found: list[str] = []
    for name, actual in (("method", request.method), ("path", request.path)):
        if name in expected and expected[name] != actual:
            found.append(f"its {name} is {actual!r}, not {expected[name]!r}")
    for name, rule in _members(expected.get("headers")).items():
        header = request.headers.get(name.lower())
        if problem := _header_problem(rule, header, first.headers.get(name.lower())):
            found.append(f"its header {name} is {header!r}, {problem}")
    wanted = _members(expected.get("body"))
    body = _body(request) if wanted else {}
    for name, value in wanted.items():
        if body.get(name) != value or name not in body:
            found.append(f"its body has {name} {body.get(name)!r}, not {value!r}")
    return found


def _header_problem(rule: object, value: str | None, first: str | None) -> str | None:
    if rule is None:
        return None if value is None else "and should be absent"
    if not isinstance(rule, Mapping):
        return None if value == rule else f"not {rule!r}"
    number = int(value) if value is not None and value.isdigit() else None
    for name, bound in rule.items():
        if name == "pattern" and (value is None or not re.search(str(bound), value)):
            return f"which does not match {bound!r}"
        if name == "same_as_first" and (value is None or value != first):
            return f"not the first request's {first!r}"
        if name == "minimum" and (number is None or number < bound):
            return f"not at least {bound}"
        if name == "maximum" and (number is None or number > bound):
            return f"not at most {bound}"
    return None


def _members(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _body(request: Received) -> Mapping[str, object]:
    try:
        return request.json()
    except (ValueError, TypeError):
        return {}
