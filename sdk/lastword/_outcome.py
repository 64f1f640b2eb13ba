"""What a request came to: the records that results, streams and errors carry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an answer; ``choice`` and ``index`` say where it stood, ``raw_arguments`` is the model's text."""

    id: str | None
    name: str
    raw_arguments: str
    choice: int = 0
    index: int = 0

    @property
    def arguments(self) -> Any:
        """The arguments, parsed as strict JSON; no text at all is ``{}``.

        Raises ``InvalidToolArguments`` if the model did not write JSON (TOOL-1); the text is never repaired.
        """
        if not self.raw_arguments.strip():
            return {}
        try:
            return json.loads(self.raw_arguments, parse_constant=_not_json)
        except (ValueError, RecursionError) as error:
            from lastword._errors import InvalidToolArguments

            raise InvalidToolArguments(self, reason=str(error)) from error

    @property
    def whole(self) -> bool:
        """Whether the arguments are one JSON object, so that nothing can have been cut off."""
        try:
            return isinstance(json.loads(self.raw_arguments), dict)
        except (ValueError, RecursionError):
            return False


@dataclass(frozen=True, slots=True)
class Partial:
    """What had been received when a request ended without completing.

    ``text`` is choice 0's, ``texts`` every choice's; ``tool_calls`` are as they came, cut ones included, so parse none
    of them; ``chunks`` counts those received.
    """

    text: str = ""
    texts: Mapping[int, str] = field(default_factory=dict)
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Mapping[str, Any] | None = None
    finish_reasons: Mapping[int, str | None] = field(default_factory=dict)
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one try met: ``code`` None where it succeeded; ``started_at`` Unix time, ``duration`` and ``delay`` (the wait
    before it) in seconds; ``timer`` the client's own timer that ended it."""

    number: int
    code: str | None
    status: int | None
    message: str
    started_at: float
    duration: float
    delay: float = 0.0
    timer: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A request's last word (OUT rules): ``outcome`` is completed, incomplete, failed or cancelled.

    ``code`` is None if and only if it completed.  ``str()`` of it is the outcome's name.
    """

    outcome: str
    code: str | None = None
    category: str | None = None
    retryable: bool = False
    message: str = ""
    request_id: str | None = None
    finish_reasons: Mapping[int, str | None] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    error: Exception | None = None

    def __str__(self) -> str:
        return self.outcome

    @property
    def completed(self) -> bool:
        """Whether every expected choice finished and the terminal event arrived."""
        return self.outcome == "completed"


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
