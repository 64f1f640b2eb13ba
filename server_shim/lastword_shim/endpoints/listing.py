"""What of a caller's own is open."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

from lastword_shim.account.lifecycle import Lifecycle, State

if TYPE_CHECKING:
    from lastword_shim.exchange.exchange import Exchange

MOST: Final = 1000
"""Requests that one answer lists."""
STATES: Final = (State.RECEIVED, State.QUEUED, State.GENERATING)


def listing(
    exchanges: Iterable[Exchange], credential: bytes, *, now: float, states: Collection[str], models: Collection[str]
) -> dict[str, Any]:
    """The open requests of these credentials, oldest first; empty ``states`` and ``models`` mean any.

    ``now`` is ``time.monotonic()``.
    """
    everybody = [exchange for exchange in exchanges if exchange.is_open]
    own = [exchange for exchange in everybody if exchange.credential == credential]
    if models:
        own = [exchange for exchange in own if exchange.life.model in models]
    seen = {exchange: exchange.shows_tokens for exchange in own}  # which brings their counts up to date
    if states:
        own = [exchange for exchange in own if _state(exchange.life) in states]
    own.sort(key=lambda exchange: exchange.life.received_at)
    line = _line(everybody) if any(_waits_here(exchange.life) for exchange in own[:MOST]) else {}
    entries = [
        _entry(exchange.life, now=now, tokens_seen=seen[exchange], position=line.get(exchange))
        for exchange in own[:MOST]
    ]
    return {"requests": entries, "total": len(own), "truncated": len(own) > MOST}


def _line(everybody: Iterable[Exchange]) -> dict[Exchange, int]:
    """Places in the shim's own queue, from 1; it is first come, first served."""
    waiting = [exchange for exchange in everybody if _waits_here(exchange.life)]
    waiting.sort(key=lambda exchange: exchange.life.asked_at or 0.0)
    return {exchange: place for place, exchange in enumerate(waiting, 1)}


def _waits_here(life: Lifecycle) -> bool:
    return life.asked_at is not None and life.queued_at is None


def _state(life: Lifecycle) -> State:
    """Whoever waits in the shim's own queue is queued for its caller, though it may yet be rejected for the record."""
    return State.QUEUED if _waits_here(life) else life.state


def _entry(life: Lifecycle, *, now: float, tokens_seen: bool, position: int | None) -> dict[str, Any]:
    state = _state(life)
    since = {State.GENERATING: life.first_token_at, State.QUEUED: life.asked_at}.get(state)
    deadline_at = None if life.deadline_ms is None else life.received_at + life.deadline_ms / 1000
    return {
        "request_id": life.request_id,
        "attempt": life.attempt,
        "model": life.model,
        "endpoint": life.endpoint[:200] or "/",
        "stream": life.stream,
        "state": str(state),
        "age_ms": _ms(now - life.received_at),
        "state_age_ms": _ms(now - (life.received_at if since is None else since)),
        "queue_time_ms": _ms(life.queue_seconds),
        "since_last_token_ms": None if life.last_token_at is None else _ms(now - life.last_token_at),
        "prompt_tokens": life.ticket.prompt_tokens,
        "completion_tokens": life.completion_tokens if tokens_seen else None,
        "max_tokens": life.ticket.max_tokens,
        "deadline_left_ms": None if deadline_at is None else _ms(deadline_at - now),
        "position": position,
    }


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else max(round(seconds * 1000), 0)
