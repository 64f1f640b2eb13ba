"""The server's own limits on one exchange: which has run out, and when to look again.

Pure: no clock of its own and no waiting.  All values are ``time.monotonic()`` seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from lastword._classify import ErrorInfo, make_error
from lastword._codes import Code
from lastword_shim._lifecycle import Lifecycle
from lastword_shim._settings import Settings

TimeoutKind = Literal["queue", "first_token", "idle", "total"]


@dataclass(frozen=True, slots=True)
class Expiry:
    """A limit that has run out: its code, the record's ``timeout_kind``, and how long it was (seconds)."""

    code: Code
    kind: TimeoutKind
    limit: float

    def error(self) -> ErrorInfo:
        """As the caller is told."""
        message = _SENTENCES[self.code].format(limit=self.limit)
        return make_error(self.code, message, origin="shim", details={"limit_seconds": self.limit})


_SENTENCES: Final = {
    Code.QUEUE_TIMEOUT: "The request waited {limit:g} s and the engine had not begun with it.",
    Code.FIRST_TOKEN_TIMEOUT: "No token came within {limit:g} s.",
    Code.GENERATION_STALLED: "The generation had begun, then no token came for {limit:g} s.",
    Code.GENERATION_TIMEOUT: "The request was not finished within the server's limit of {limit:g} s.",
    Code.DEADLINE_EXCEEDED: "The request was not finished within the caller's deadline of {limit:g} s.",
}


class Timers:
    """Looks at one exchange's account.  Nothing needs to be told to it: what changes is looked at again."""

    def __init__(self, settings: Settings, life: Lifecycle) -> None:
        self._settings = settings
        self._life = life
        self._unblocked_at = 0.0

    def written(self, now: float) -> None:
        """The client has just taken something: the time that it took to do so was not the engine's."""
        self._unblocked_at = now

    def look(self, now: float, *, generation: bool, sees_tokens: bool, busy: bool) -> tuple[Expiry | None, float | None]:
        """The limit that has run out, or in how many seconds to look again (None: never).

        ``generation``: the server's limits apply, not the caller's deadline alone; ``sees_tokens``: tokens are
        counted, so their absence means something; ``busy``: a write waits for the client.
        """
        next_look: list[float] = []
        for code, kind, start, limit in self._running(now, generation=generation, sees_tokens=sees_tokens, busy=busy):
            if now >= start + limit:
                return Expiry(code, kind, limit), None
            next_look.append(start + limit - now)
        idle = self._settings.idle_timeout
        if generation and sees_tokens and idle is not None:
            next_look.append(idle / 4)  # a new token is noticed when looked for, not when it comes
        return None, min(next_look, default=None)

    def _running(
        self, now: float, *, generation: bool, sees_tokens: bool, busy: bool
    ) -> list[tuple[Code, TimeoutKind, float, float]]:
        settings, life = self._settings, self._life
        found: list[tuple[Code, TimeoutKind, float, float]] = []
        if life.deadline_ms is not None:
            found.append((Code.DEADLINE_EXCEEDED, "total", life.received_at, life.deadline_ms / 1000))
        if not generation:
            return found
        if settings.total_timeout is not None:
            found.append((Code.GENERATION_TIMEOUT, "total", life.received_at, settings.total_timeout))
        waits_here = life.queued_at is None
        if life.first_token_at is None:
            begun = life.ticket.scheduled_at is not None
            if settings.queue_timeout is not None and not begun and (waits_here or sees_tokens):
                asked_at = now if life.asked_at is None else life.asked_at  # a slow upload is no waiting
                found.append((Code.QUEUE_TIMEOUT, "queue", asked_at, settings.queue_timeout))
            if settings.first_token_timeout is not None and sees_tokens:
                found.append((Code.FIRST_TOKEN_TIMEOUT, "first_token", life.received_at, settings.first_token_timeout))
        elif settings.idle_timeout is not None and sees_tokens and not busy:
            since = max(life.last_token_at or 0.0, self._unblocked_at)
            found.append((Code.GENERATION_STALLED, "idle", since, settings.idle_timeout))
        return found
