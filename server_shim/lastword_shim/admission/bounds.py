"""What bounds there are, and what is reserved under them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from lastword_shim._settings import Settings


@dataclass(frozen=True, slots=True)
class Bounds:
    """Most requests and most prompt tokens at work, and most that wait; None: no bound."""

    inflight: int | None = None
    queued: int | None = None
    inflight_tokens: int | None = None
    queued_tokens: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> Bounds:
        """As an operator has set them; with a bound on what is at work, nobody waits unless he says how many may."""
        holds = settings.max_inflight is not None or settings.max_inflight_tokens is not None
        queued = settings.max_queued
        if holds and queued is None and settings.max_queued_tokens is None:
            queued = 0
        return cls(settings.max_inflight, queued, settings.max_inflight_tokens, settings.max_queued_tokens)

    @property
    def hold(self) -> bool:
        """Whether anybody has to wait here, and not at the engine."""
        return self.inflight is not None or self.inflight_tokens is not None


class Place:
    """A place at the engine, or in the line for one.

    ``tokens`` is what it has reserved, ``entered_at`` when it came (monotonic seconds); ``granted`` is done once it is
    at the engine.  ``began`` tells when the engine began with it, None as long as it has not, as far as can be seen;
    ``tells`` is whether that can be seen at all.
    """

    __slots__ = ("began", "entered_at", "granted", "tells", "tokens")

    def __init__(self, tokens: int, entered_at: float, began: Callable[[], float | None], *, tells: bool) -> None:
        self.tokens = tokens
        self.entered_at = entered_at
        self.began = began
        self.tells = tells
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
