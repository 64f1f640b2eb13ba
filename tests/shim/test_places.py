"""Places and the line for them: any order of coming, leaving and correcting keeps the bounds, and nobody is overtaken."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword._classify import make_error
from lastword._codes import Code
from lastword_shim import Settings
from lastword_shim.admission.bounds import Bounds, Place
from lastword_shim.admission.places import Places
from lastword_shim.admission.refusals import Refusal

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def places_of(**bounds: int | None) -> tuple[Places, Clock]:
    clock = Clock()
    return Places(Bounds(**bounds), clock=clock, rng=lambda: 0.5), clock


def enter(places: Places, tokens: int = 1, **options: Any) -> Place:
    return places.enter(tokens, lambda: None, **options)


def refusal(places: Places, tokens: int = 1, **options: Any) -> Any:
    with pytest.raises(Refusal) as caught:
        enter(places, tokens, **options)
    assert caught.value.error.code == "queue_overloaded"
    return caught.value.error


SIZES = st.integers(1, 12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), SIZES, st.just(0)),
        st.tuples(st.just("leave"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("correct"), st.integers(0, 30), SIZES),
    ),
    max_size=60,
)
LIMITS = st.builds(
    Bounds,
    inflight=st.none() | st.integers(1, 4),
    queued=st.none() | st.integers(0, 4),
    inflight_tokens=st.none() | st.integers(1, 15),
    queued_tokens=st.none() | st.integers(0, 15),
)


class Seen:
    """What the places are believed to be, from outside: who came in which order, and what each has reserved."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.places = Places(bounds)
        self.tokens: dict[Place, int] = {}

    def step(self, what: str, first: int, second: int) -> None:
        if what == "enter":
            try:
                place = enter(self.places, first)
            except Refusal:
                self.check_refused(first)
                return
            self.tokens[place] = first
        elif self.tokens:
            place = list(self.tokens)[first % len(self.tokens)]
            if what == "leave":
                del self.tokens[place]
                self.places.leave(place)
                self.places.leave(place)  # once more does nothing
            elif place.granted.done() and self.places.correct(place, second) is None:
                self.tokens[place] = second

    def check_refused(self, tokens: int) -> None:
        """Somebody is refused only where he neither fits in nor may wait."""
        waiting = [self.tokens[place] for place in self.tokens if not place.granted.done()]
        if self.bounds.hold:
            assert waiting or not self.fits(tokens)
        line = waiting if self.bounds.hold else list(self.tokens.values())
        queued, most = self.bounds.queued, self.bounds.queued_tokens
        count_is_full = queued is not None and len(line) >= queued
        assert count_is_full or (most is not None and (most == 0 or (line and sum(line) + tokens > most)))

    def fits(self, tokens: int) -> bool:
        inside = [self.tokens[place] for place in self.tokens if place.granted.done()]
        if self.bounds.inflight is not None and len(inside) >= self.bounds.inflight:
            return False
        return not inside or self.bounds.inflight_tokens is None or sum(inside) + tokens <= self.bounds.inflight_tokens

    def check(self) -> None:
        inside = [place for place in self.tokens if place.granted.done()]
        waiting = [place for place in self.tokens if not place.granted.done()]
        within(inside, self.tokens, self.bounds.inflight, self.bounds.inflight_tokens)
        line = waiting if self.bounds.hold else list(self.tokens)
        within(line, self.tokens, self.bounds.queued, self.bounds.queued_tokens)
        assert (self.places.inside, self.places.waiting) == (len(inside), len(line))
        if waiting:  # first come, first served; and no place is left empty while somebody waits who fits in
            order = list(self.tokens)
            assert order.index(waiting[0]) > max(order.index(place) for place in inside)
            assert not self.fits(self.tokens[waiting[0]])


def within(some: list[Place], tokens: dict[Place, int], count: int | None, total: int | None) -> None:
    assert count is None or len(some) <= count
    assert total is None or len(some) < 2 or sum(tokens[place] for place in some) <= total


@given(LIMITS, STEPS)
def test_no_order_of_events_breaks_a_bound_loses_a_place_or_lets_anybody_overtake(
    bounds: Bounds, steps: list[tuple[str, int, int]]
) -> None:
    """Coming, leaving, giving up, corrections up and down; whoever is larger than a bound by himself is alone."""

    async def play() -> None:
        seen = Seen(bounds)
        for step in steps:
            seen.step(*step)
            seen.check()
        for place in list(seen.tokens):
            seen.step("leave", 0, 0)
            seen.check()
            assert place not in seen.tokens
        assert (seen.places.inside, seen.places.waiting) == (0, 0)
        assert seen.places._inside_tokens == seen.places._line_tokens == 0

    asyncio.run(play())


async def test_a_request_that_is_larger_than_the_bound_runs_alone_and_waits_alone() -> None:
    """It is not refused for ever, and nothing runs or waits beside it."""
    places, _ = places_of(inflight_tokens=10, queued_tokens=10)
    small = enter(places, 1)
    large = enter(places, 50)
    assert not large.granted.done()
    assert refusal(places, 1).details["waiting_tokens"] == 50
    places.leave(small)
    assert large.granted.done()
    behind = enter(places, 1)
    assert not behind.granted.done()
    places.leave(large)
    assert behind.granted.done()


async def test_a_refusal_tells_how_full_it_is() -> None:
    """The bounds that are set, how they are used, and nothing that has not been measured."""
    places, _ = places_of(inflight=1, queued=1)
    enter(places), enter(places)
    assert refusal(places).details == {"inflight": 1, "max_inflight": 1, "waiting": 1, "max_queued": 1}
    places, _ = places_of(inflight_tokens=10, queued_tokens=5)
    enter(places, 8), enter(places, 4)
    assert refusal(places, 3).details == {
        "inflight": 1, "waiting": 1, "inflight_tokens": 8, "max_inflight_tokens": 10,
        "waiting_tokens": 4, "max_queued_tokens": 5, "prompt_tokens": 3,
    }  # fmt: skip


async def test_the_hint_is_the_place_in_line_at_the_measured_pace() -> None:
    """A place is given up each 2 s; the one behind two that wait comes in 6 s, and who was refused after it in 8."""
    places, clock = places_of(inflight=1, queued=2)
    line = [enter(places), enter(places), enter(places)]
    assert refusal(places).retry_after == 1.0  # nothing has been measured
    for _ in range(4):
        clock.now += 2.0
        places.leave(line.pop(0))
        line.append(enter(places))
    first, second = refusal(places), refusal(places)
    assert (first.retry_after, second.retry_after) == (6.0, 8.0)
    assert first.details["estimated_wait_ms"] == second.details["estimated_wait_ms"] == 6000


async def test_a_request_that_would_come_too_late_is_refused_and_only_where_that_was_measured() -> None:
    """5 s of patience against 6 s of waiting; without a measurement, or with a place free, it is let in."""
    places, clock = places_of(inflight=1, queued=9)
    line = [enter(places), enter(places, patience=0.001), enter(places)]
    for _ in range(4):
        clock.now += 2.0
        places.leave(line.pop(0))
        line.append(enter(places))
    error = refusal(places, patience=5.0)
    assert (error.details["deadline_ms"], error.details["estimated_wait_ms"]) == (5000, 6000)
    assert error.retry_after == 1.0  # by then the line is short enough for that patience
    with pytest.raises(Refusal):
        places.check(patience=5.0)
    places.check(patience=7.0)
    enter(places, patience=7.0)
    for place in line:
        places.leave(place)
    places, clock = places_of(inflight=2)
    enter(places, patience=0.001)


async def test_the_engines_own_line_is_measured_by_whom_it_begins_with() -> None:
    """Without a bound on what is at work; a line counts as one once its first has waited for a second."""
    places, clock = places_of(queued=3)
    began: dict[int, float] = {}
    for number in range(3):
        assert places.enter(1, partial(began.get, number)).granted.done()
    assert refusal(places).details == {"waiting": 3, "max_queued": 3}
    for number in range(6):
        clock.now += 2.0
        began[number] = clock.now
        places.enter(1, partial(began.get, number + 3))
    error = refusal(places)
    assert error.details["estimated_wait_ms"] == pytest.approx(8000, rel=0.2)
    began.update({6: clock.now})
    with pytest.raises(Refusal):
        places.check(patience=1.0)
    began.update({7: clock.now, 8: clock.now})
    places.check(patience=1.0)  # nobody waits any more


async def test_where_nobody_tells_who_was_begun_with_no_deadline_is_held_against_anybody() -> None:
    """Answers in one piece of an engine that says nothing: they may all be at work."""
    places, clock = places_of(queued=None)
    line = [enter(places, tells=False) for _ in range(8)]
    for place in line[:6]:
        clock.now += 3.0
        places.leave(place, answered=True)
    enter(places, tells=False, patience=0.5)


async def test_those_who_give_up_are_no_turns() -> None:
    """Where all leave the engine's line because it stands still, nothing has moved."""
    places, clock = places_of(queued=8)
    line = [enter(places) for _ in range(8)]
    for place in line:
        clock.now += 0.5
        places.leave(place)
    for _ in range(8):
        enter(places)
    clock.now += 1.5
    assert "estimated_wait_ms" not in refusal(places).details


async def test_the_engines_own_refusals_get_a_measured_hint_too() -> None:
    """From those that end while it refuses; a hint of its own stands."""
    places, clock = places_of()
    error = make_error(Code.QUEUE_OVERLOADED, "busy", origin="engine")
    assert places.refused_by_engine(error).retry_after == 1.0
    line = [enter(places) for _ in range(8)]
    for place in line[:6]:
        clock.now += 2.0
        places.leave(place, answered=True)
        places.refused_by_engine(error)
    assert places.refused_by_engine(error).retry_after == pytest.approx(4.0, rel=0.3)  # two were told since the last
    own = replace(error, retry_after=7.0)
    assert places.refused_by_engine(own).retry_after == 7.0


async def test_a_correction_that_does_not_fit_changes_nothing() -> None:
    """The error has the true length, and what had been reserved stays reserved."""
    places, _ = places_of(inflight_tokens=10)
    first, second = enter(places, 4), enter(places, 4)
    error = places.correct(second, 7)
    assert error is not None
    assert (error.code, error.details["prompt_tokens"], error.details["inflight_tokens"]) == ("queue_overloaded", 7, 4)
    assert places.correct(second, 6) is None
    places.leave(first)
    assert places.correct(second, 99) is None  # alone


@pytest.mark.parametrize(
    ("settings", "queued"),
    [
        ({"max_inflight": 2}, 0),
        ({"max_inflight_tokens": 2}, 0),
        ({"max_inflight": 2, "max_queued": 5}, 5),
        ({"max_inflight": 2, "max_queued_tokens": 5}, None),
        ({"max_queued_tokens": 5}, None),
        ({}, None),
    ],
)
async def test_nobody_waits_unless_it_is_said_how_many_may(settings: dict[str, Any], queued: int | None) -> None:
    """A bound on what is at work makes a line here, of which an operator must say how long it may be."""
    assert Bounds.of(Settings(**settings)).queued == queued
