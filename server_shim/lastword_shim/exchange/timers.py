"""The server's own limits on one exchange: which has run out, and when to look again.

Pure: no clock of its own and no waiting.  All values are ``time.monotonic()`` seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from lastword._classify import ErrorInfo, make_error
from lastword._codes import Code
from lastword_shim._settings import Settings
from lastword_shim.account.lifecycle import Lifecycle

TimeoutKind = Literal["queue", "first_token", "idle", "total"]
BLOCKED: Final = 0.05
"""Seconds from which on a write has waited for the client."""
LOOK_AGAIN: Final = 0.25
"""Seconds until a limit is looked at again that has passed while nothing could be seen of what it limits."""


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
        self.unblocked_at = 0.0  # when a write last ceased to wait for the client

    def written(self, began: float, now: float) -> None:
        """The client has taken something; if it took its time, that was not the engine's."""
        if now - began > BLOCKED:
            self.unblocked_at = now

    def look(
        self, now: float, *, works: bool, generation: bool, sees_tokens: bool, busy: bool
    ) -> tuple[Expiry | None, float | None]:
        """The limit that has run out, or in how many seconds to look again (None: never).

        ``works``: the server's limits apply, not the caller's deadline alone; ``generation``: those on tokens too;
        ``sees_tokens``: tokens are counted by now, so their absence means something; ``busy``: a write waits for the
        client.
        """
        pauses: list[float] = []
        for code, kind, start, limit, armed in self._running(now, works, generation, sees_tokens, busy):
            if now < start + limit:
                pauses.append(start + limit - now)
            elif armed:
                return Expiry(code, kind, limit), None
            else:
                pauses.append(LOOK_AGAIN)
        return None, min(pauses, default=None)

    def _running(
        self, now: float, works: bool, generation: bool, sees_tokens: bool, busy: bool
    ) -> Iterator[tuple[Code, TimeoutKind, float, float, bool]]:
        settings, life = self._settings, self._life
        if life.deadline_ms is not None:
            yield Code.DEADLINE_EXCEEDED, "total", life.received_at, life.deadline_ms / 1000, True
        if works and settings.total_timeout is not None:
            yield Code.GENERATION_TIMEOUT, "total", life.received_at, settings.total_timeout, True
        began, waits_here = life.first_token_at, life.queued_at is None
        waits = generation or (works and waits_here)
        if settings.queue_timeout is not None and waits and began is None and life.ticket.scheduled_at is None:
            asked_at = now if life.asked_at is None else life.asked_at  # a slow upload is no waiting
            yield Code.QUEUE_TIMEOUT, "queue", asked_at, settings.queue_timeout, sees_tokens or waits_here
        if not generation:
            return
        if settings.first_token_timeout is not None and began is None:
            limit = settings.first_token_timeout
            yield Code.FIRST_TOKEN_TIMEOUT, "first_token", life.received_at, limit, sees_tokens
        if settings.idle_timeout is not None:
            since = now if began is None else max(life.last_token_at or began, self.unblocked_at)
            armed = began is not None and sees_tokens and not busy
            yield Code.GENERATION_STALLED, "idle", since, settings.idle_timeout, armed
            # A new token is noticed when looked for, not when it comes.
            yield Code.GENERATION_STALLED, "idle", now, settings.idle_timeout / 4, False
