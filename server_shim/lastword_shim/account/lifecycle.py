"""What became of one exchange: its states, its times, and the one record that it leaves.

``received → rejected | queued → generating → completed | failed | cancelled | incomplete`` (REC rules of SPEC.md).
    received ── 401, 404 … ──────────────────────────────► rejected
       │ the application asks for the body
       ├── draining, too large, overloaded, no JSON ─────► rejected
       ▼
    queued ── the engine refuses (context, grammar …) ───► rejected
       │ first token                └─ timer, gone, stop ► failed, cancelled
       ▼
    generating ── terminal, timer, exception, gone, stop ► completed, failed, cancelled

All times inside are ``time.monotonic()`` seconds; the record has milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from lastword._classify import ErrorInfo
from lastword_shim.engine import Ticket
from lastword_shim.engine.stated import tokens

CLIENT_CLOSED_REQUEST: Final = 499
MOST_PATH: Final = 200
"""Characters of a path that are kept: a caller can make it as long as he likes."""


class State(StrEnum):
    """Where an exchange stands."""

    RECEIVED = "received"
    """The head has come; the engine's own application may still refuse it."""
    REJECTED = "rejected"
    """Refused before it reached the engine's queue."""
    QUEUED = "queued"
    """Handed on; no token yet."""
    GENERATING = "generating"
    """The first token has come."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INCOMPLETE = "incomplete"


@dataclass(slots=True)
class Lifecycle:
    """The running account of one exchange."""

    request_id: str
    attempt: int
    endpoint: str
    ticket: Ticket
    clock: Callable[[], float] = time.monotonic
    received_at: float = 0.0
    received_wall: float = field(default_factory=time.time)
    operation: str | None = None
    model: str | None = None
    stream: bool | None = None
    deadline_ms: int | None = None
    asked_at: float | None = None
    queued_at: float | None = None
    first_content_at: float | None = None
    last_content_at: float | None = None
    gone_at: float | None = None
    gone_phase: str | None = None
    gone_tokens: int | None = None
    stopped_at: float | None = None
    ended_at: float | None = None
    finish_reasons: Mapping[int, str | None] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None
    timeout_kind: str | None = None
    rejected: bool = False

    def __post_init__(self) -> None:
        self.received_at = self.clock()
        self.endpoint = self.endpoint[:MOST_PATH] or "/"

    @property
    def state(self) -> State:
        """The state now, for an exchange that has not ended."""
        if self.first_token_at is not None:
            return State.GENERATING
        return State.RECEIVED if self.queued_at is None else State.QUEUED

    @property
    def first_token_at(self) -> float | None:
        """When the first token came: at the engine if it tells, else as content on the wire."""
        seen = [at for at in (self.ticket.first_token_at, self.first_content_at) if at is not None]
        return min(seen, default=None)

    @property
    def last_token_at(self) -> float | None:
        """When the last token came, likewise."""
        seen = [at for at in (self.ticket.last_token_at, self.last_content_at) if at is not None]
        return max(seen, default=None)

    def content(self) -> None:
        """Content has left the engine's application."""
        now = self.clock()
        self.last_content_at = now
        if self.first_content_at is None:
            self.first_content_at = now

    def client_left(self) -> None:
        """The connection to the client has closed."""
        self.gone_at = self.clock()
        self.gone_phase = "generating" if self.state is State.GENERATING else "queued"
        self.gone_tokens = self.ticket.completion_tokens

    def record(self, error: ErrorInfo | None, status: int | None) -> dict[str, Any]:
        """The record of an exchange that has ended; ``error`` None where it completed."""
        gone = self.gone_at is not None
        return {
            "request_id": self.request_id,
            "attempt": self.attempt,
            "side": "server",
            "model": self.model,
            "endpoint": self.endpoint,
            "operation": self.operation,
            "stream": self.stream,
            "received_at": datetime.fromtimestamp(self.received_wall, UTC).isoformat().replace("+00:00", "Z"),
            "state": str(self._final_state(error)),
            "outcome": "completed" if error is None else error.outcome,
            "error_code": None if error is None else error.code,
            "origin": None if error is None else error.origin,
            "http_status": CLIENT_CLOSED_REQUEST if gone else status,
            "finish_reasons": [self.finish_reasons[index] for index in sorted(self.finish_reasons)],
            "prompt_tokens": self.prompt_tokens,
            "max_tokens": self.ticket.max_tokens,
            "effective_max_tokens": self.ticket.effective_max_tokens,
            "completion_tokens": self.completion_tokens,
            "queue_time_ms": _ms(self.queue_seconds),
            "time_to_first_token_ms": _ms(_between(self.received_at, self.first_token_at)),
            "generation_time_ms": _ms(self.generation_seconds),
            "total_time_ms": _ms(_between(self.received_at, self.ended_at)),
            "deadline_ms": self.deadline_ms,
            "timeout_kind": self.timeout_kind,
            "client_disconnected": gone,
            "disconnect_phase": self.gone_phase,
            "tokens_at_disconnect": self.gone_tokens if gone else None,
            "tokens_after_disconnect": self.tokens_after_disconnect,
            "generation_time_after_disconnect_ms": _ms(_between(self.gone_at, self.stopped_at)),
            "wasted": gone and self._has_generated,
        }

    @property
    def completion_tokens(self) -> int | None:
        """Tokens made: the engine's count, else what the answer's usage says."""
        if self.ticket.completion_tokens is not None:
            return self.ticket.completion_tokens
        stated = tokens((self.usage or {}).get("completion_tokens"))
        if stated is not None:
            return stated
        none_seen = self.ticket.submitted_at is not None and self.first_content_at is None
        return 0 if none_seen and self.stream else None

    @property
    def tokens_after_disconnect(self) -> int | None:
        """Tokens that came between the disconnect being seen and the engine having stopped; None if nobody counts."""
        if self.gone_at is None or self.gone_tokens is None or self.ticket.completion_tokens is None:
            return None
        return self.ticket.completion_tokens - self.gone_tokens

    @property
    def queue_seconds(self) -> float | None:
        """From receipt until the engine began; its own measure of its queue is finer than ours."""
        if self.ticket.queue_seconds is not None and self.ticket.submitted_at is not None:
            return self.ticket.submitted_at - self.received_at + self.ticket.queue_seconds
        return _between(self.received_at, self.ticket.scheduled_at)

    @property
    def generation_seconds(self) -> float | None:
        """From the first token to the last, by the engine's own clock where it tells."""
        if self.ticket.generation_seconds is not None:
            return self.ticket.generation_seconds
        return _between(self.first_token_at, self.last_token_at)

    @property
    def wasted_seconds(self) -> float:
        """From the first token until the engine had stopped, for a client that had left."""
        return _between(self.first_token_at, self.stopped_at) or 0.0

    @property
    def _has_generated(self) -> bool:
        """Whether there is anything to be wasted: tokens, or, where nobody counts them, content that was seen (REC-3)."""
        made = self.completion_tokens
        if made is not None:
            return made > 0
        return self.first_content_at is not None or any(self.finish_reasons.values())

    @property
    def prompt_tokens(self) -> int | None:
        """The engine's count, else what the answer's usage says."""
        if self.ticket.prompt_tokens is not None:
            return self.ticket.prompt_tokens
        return tokens((self.usage or {}).get("prompt_tokens"))

    def _final_state(self, error: ErrorInfo | None) -> State:
        if error is None:
            return State.COMPLETED
        return State.REJECTED if self.rejected and error.outcome == "failed" else State(error.outcome)


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(end - start, 0.0)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(max(seconds, 0.0) * 1000, 3)
