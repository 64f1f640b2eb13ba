"""How many may be at work or wait, by count and by prompt tokens; first come, first served.

With a bound on what is at work there is a line here, and a place is taken or stood in line for in one step: between
the check and the reservation nothing can come.  Without one all go on to the engine at once, and those that it has not
begun with are its line.
"""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from lastword._classify import ErrorInfo
from lastword_shim.admission.bounds import Bounds, Place
from lastword_shim.admission.pace import Pace, pause
from lastword_shim.admission.refusals import Refusal, overloaded, too_late

_LOOK_AGAIN: Final = 0.1
"""Seconds until it is looked anew who of the engine's own line it has begun with."""
_FEW: Final = 256
"""So many are asked at once where it decides whether somebody is refused."""
_QUEUES_FROM: Final = 1.0
"""Seconds that the first of the engine's line has waited when it is a line: an idle engine needs a moment too."""
_FULL_FOR: Final = 5.0
"""Seconds from one of its own refusals on for which an engine is taken to be full."""


class Places:
    """All places of one process.  ``clock`` gives monotonic seconds, ``rng`` numbers from 0 to 1."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._bounds, self._clock, self._rng = bounds, clock, rng
        self._inside: OrderedDict[Place, None] = OrderedDict()
        self._line: OrderedDict[Place, None] = OrderedDict()  # here, or of those inside the ones not begun with
        self._inside_tokens = self._line_tokens = 0
        self._turns = Pace()  # of those that wait
        self._ends = Pace()  # of those at the engine, while it refuses further ones itself
        self._engine_refused_at = float("-inf")
        self._turned_away = self._turned_away_by_engine = 0  # since somebody's turn last came: they will be back too
        self._looked_at = float("-inf")

    @property
    def count_tokens(self) -> bool:
        """Whether there is a bound on prompt tokens."""
        return self._bounds.inflight_tokens is not None or self._bounds.queued_tokens is not None

    @property
    def inside(self) -> int:
        """How many are at the engine."""
        return len(self._inside)

    @property
    def waiting(self) -> int:
        """How many wait: here, or, without a bound on what is at work, at the engine."""
        return len(self._line)

    def check(self, patience: float | None = None) -> None:
        """Before its body is read: a request that would be refused however small it is.

        Raises:
            Refusal: so it is.
        """
        if not (self._bounds.hold and self._has_room(1)):
            self._refuse_to_line(1, patience)

    def enter(
        self, tokens: int, began: Callable[[], float | None], *, tells: bool = True, patience: float | None = None
    ) -> Place:
        """Take a place, or stand in line for one; ``patience`` is how many seconds the caller will wait at most.

        Raises:
            Refusal: there is none, or its turn would come too late.
        """
        stands_in_line = not (self._bounds.hold and self._has_room(tokens))
        if stands_in_line:
            self._refuse_to_line(tokens, patience)
        now = self._clock()
        place = Place(tokens, now, began, tells=tells)
        if stands_in_line:
            self._line[place] = None
            self._line_tokens += tokens
        if not (self._bounds.hold and stands_in_line):
            self._take_in(place)
        self._note_crowding(now)
        return place

    def correct(self, place: Place, tokens: int) -> ErrorInfo | None:
        """Its prompt has so many tokens; if these do not fit beside the others, nothing changes and the error says so."""
        more = tokens - place.tokens
        bounds = self._bounds
        if more > 0 and place in self._inside:
            if bounds.hold:
                fits = _fits(more, self._inside_tokens, bounds.inflight_tokens) or len(self._inside) == 1
            else:
                self._look_who_began(self._clock(), closely=True)
                fits = place not in self._line or len(self._line) == 1
                fits = fits or _fits(more, self._line_tokens, bounds.queued_tokens)
            if not fits:
                return self._overloaded(tokens, self._clock(), place)
        if place in self._inside:
            self._inside_tokens += more
        if place in self._line:
            self._line_tokens += more
        place.tokens = tokens
        self._advance()
        return None

    def leave(self, place: Place, *, answered: bool = False) -> None:
        """Give a place up, or the wait for it; ``answered``: with a whole answer, so that the engine has begun with it."""
        now = self._clock()
        has_begun = answered or (place in self._inside and place.began() is not None)
        if place in self._inside:
            self._look_who_began(now)
            del self._inside[place]
            self._inside_tokens -= place.tokens
            if self._bounds.hold:
                self._turn(now)
            if has_begun:
                self._note_crowding(now)
                self._ends.turn(now, abreast=len(self._inside))
                self._turned_away_by_engine = 0
        if place in self._line:
            del self._line[place]
            self._line_tokens -= place.tokens
            if has_begun:
                self._turn(now)
        self._advance()
        self._note_crowding(now)

    def refused_by_engine(self, error: ErrorInfo) -> ErrorInfo:
        """The engine's own refusal, with a hint when to come again unless it gave one itself."""
        now = self._clock()
        self._engine_refused_at = now
        self._note_crowding(now)
        self._turned_away_by_engine += 1
        if error.retry_after is not None:
            return error
        abreast = max(len(self._inside) - 1, 0)
        seconds = self._ends.seconds(self._turned_away_by_engine, now, abreast=abreast)
        return replace(error, retry_after=pause(seconds, self._rng))

    # Whether there is room.

    def _has_room(self, tokens: int) -> bool:
        """Whether one more may go in at once: nobody waits before it, and it fits beside the others or is alone."""
        return not self._line and self._fits_in(tokens)

    def _fits_in(self, tokens: int) -> bool:
        bounds = self._bounds
        if bounds.inflight is not None and len(self._inside) >= bounds.inflight:
            return False
        return not self._inside or _fits(tokens, self._inside_tokens, bounds.inflight_tokens)

    def _may_wait(self, tokens: int) -> bool:
        bounds = self._bounds
        if bounds.queued is not None and len(self._line) >= bounds.queued:
            return False
        if bounds.queued_tokens == 0:
            return False
        return not self._line or _fits(tokens, self._line_tokens, bounds.queued_tokens)

    def _refuse_to_line(self, tokens: int, patience: float | None) -> None:
        now = self._clock()
        self._look_who_began(now)
        if not self._may_wait(tokens) or self._too_long(patience, now) is not None:
            self._look_who_began(now, closely=True)
        if not self._may_wait(tokens):
            raise Refusal(self._overloaded(tokens, now))
        wait = self._too_long(patience, now)
        if patience is not None and wait is not None:
            raise Refusal(too_late(patience, wait, self._numbers(tokens), pause(wait - patience, self._rng)))

    def _too_long(self, patience: float | None, now: float) -> float | None:
        """How long the next one would wait, if that has been measured and is longer than ``patience``."""
        if patience is None:
            return None
        if not self._bounds.hold and not (self._engine_queues(now) and all(each.tells for each in self._line)):
            return None
        wait = self._turns.seconds(len(self._line) + 1, now, abreast=self._abreast)
        return wait if wait is not None and wait > patience else None

    def _engine_queues(self, now: float) -> bool:
        """Whether those that the engine has not begun with wait for others, and not only for their own beginning."""
        first = next(iter(self._line), None)
        return first is not None and now - first.entered_at >= _QUEUES_FROM

    def _overloaded(self, tokens: int, now: float, place: Place | None = None) -> ErrorInfo:
        self._turned_away += 1
        self._note_crowding(now)
        turns = len(self._line) + self._turned_away
        seconds = self._turns.seconds(turns, now, abreast=self._abreast)
        wait = self._turns.seconds(len(self._line) + 1, now, abreast=self._abreast)
        estimate = {} if wait is None else {"estimated_wait_ms": round(wait * 1000)}
        return overloaded({**self._numbers(tokens, place), **estimate}, pause(seconds, self._rng))

    def _numbers(self, tokens: int, place: Place | None = None) -> Mapping[str, int]:
        """What an error tells of the bounds that are set: how others use them, beside whoever is in this ``place``."""
        bounds = self._bounds
        numbers: dict[str, int | None] = {}
        own = (place in self._inside, place in self._line)
        own_tokens = 0 if place is None else place.tokens
        if bounds.hold:
            numbers |= {"inflight": len(self._inside) - own[0], "max_inflight": bounds.inflight}
        numbers |= {"waiting": len(self._line) - own[1], "max_queued": bounds.queued}
        if bounds.inflight_tokens is not None:
            used = self._inside_tokens - own[0] * own_tokens
            numbers |= {"inflight_tokens": used, "max_inflight_tokens": bounds.inflight_tokens}
        if bounds.queued_tokens is not None:
            used = self._line_tokens - own[1] * own_tokens
            numbers |= {"waiting_tokens": used, "max_queued_tokens": bounds.queued_tokens}
        if self.count_tokens:
            numbers["prompt_tokens"] = tokens
        return {name: number for name, number in numbers.items() if number is not None}

    # Moving on.

    def _take_in(self, place: Place) -> None:
        self._inside[place] = None
        self._inside_tokens += place.tokens
        if not place.granted.done():
            place.granted.set_result(None)

    def _advance(self) -> None:
        """Let in who is first in line as long as there is room for him; nobody overtakes."""
        while self._bounds.hold and self._line:
            first = next(iter(self._line))
            if not self._fits_in(first.tokens):
                return
            del self._line[first]
            self._line_tokens -= first.tokens
            self._take_in(first)

    def _look_who_began(self, now: float, *, closely: bool = False) -> None:
        """Of the engine's own line.  Each of them has to be asked, so not each time; they tell when it was.

        ``closely``: it decides whether somebody is refused.
        """
        if self._bounds.hold or not self._line:
            return
        if now - self._looked_at < _LOOK_AGAIN and not (closely and len(self._line) <= _FEW):
            return
        self._looked_at = now
        begun = [(at, place) for place in self._line if (at := place.began()) is not None]
        for at, place in sorted(begun, key=lambda each: each[0]):
            del self._line[place]
            self._line_tokens -= place.tokens
            self._turn(at)
            if not self._line:
                self._turns.crowded(at, False)

    def _turn(self, at: float) -> None:
        self._turns.turn(at, abreast=self._abreast)
        self._turned_away = 0

    @property
    def _abreast(self) -> int:
        return len(self._inside) if self._bounds.hold else len(self._inside) - len(self._line)

    def _note_crowding(self, now: float) -> None:
        bounds = self._bounds
        if bounds.hold:
            crowded = bool(self._line) or self._turned_away > 0
            crowded |= bounds.inflight is not None and len(self._inside) >= bounds.inflight
            crowded |= bounds.inflight_tokens is not None and self._inside_tokens >= bounds.inflight_tokens
        else:
            crowded = self._engine_queues(now)
        self._turns.crowded(now, crowded)
        full_until = self._engine_refused_at + _FULL_FOR
        self._ends.crowded(min(now, full_until), now < full_until)


def _fits(tokens: int, others: int, bound: int | None) -> bool:
    return bound is None or others + tokens <= bound
