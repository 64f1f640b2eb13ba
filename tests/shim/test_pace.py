"""How fast those who wait get their turn, by scripted times; and what is told of it."""

from __future__ import annotations

import random

import pytest

from lastword_shim.admission.pace import FEWEST_TURNS, UNMEASURED_PAUSE, Pace, pause


def steady(pace: Pace, *, start: float, every: float, turns: int) -> float:
    """Crowded from ``start`` on, with a turn each ``every`` seconds; the time of the last."""
    pace.crowded(start, True)
    for number in range(1, turns + 1):
        pace.turn(start + number * every)
    return start + turns * every


def test_turns_that_come_steadily_are_expected_to_go_on() -> None:
    """Four turns at two a second take two seconds."""
    pace = Pace()
    now = steady(pace, start=100.0, every=0.5, turns=10)
    assert pace.seconds(4, now) == pytest.approx(2.0)
    assert pace.seconds(1, now) == pytest.approx(0.5)


def test_nothing_is_said_before_it_was_measured() -> None:
    """One long request does not speak for all, and with many side by side a few early ends do not."""
    pace = Pace()
    assert pace.seconds(1, 5.0) is None
    now = steady(pace, start=0.0, every=1.0, turns=FEWEST_TURNS - 1)
    assert pace.seconds(1, now) is None
    pace.turn(now + 1)
    assert pace.seconds(1, now + 1) == pytest.approx(1.0)
    assert pace.seconds(1, now + 1, abreast=64) is None


def test_quiet_times_do_not_count() -> None:
    """Neither their turns, which tell only how much was asked for, nor their time."""
    pace = Pace()
    for at in (1.0, 9.0, 17.0, 25.0):
        pace.turn(at)
    assert pace.seconds(1, 26.0) is None
    now = steady(pace, start=30.0, every=0.5, turns=4)
    pace.crowded(now, False)
    assert pace.seconds(2, now + 100) == pytest.approx(1.0)
    now = steady(pace, start=now + 100, every=0.5, turns=4)
    assert pace.seconds(2, now) == pytest.approx(1.0)


def test_an_engine_that_stands_still_is_slower_the_longer_it_does() -> None:
    """Without a turn nothing new is measured, but the waiting is."""
    pace = Pace()
    now = steady(pace, start=0.0, every=1.0, turns=10)
    assert pace.seconds(1, now + 30) == pytest.approx(4.0)
    assert pace.seconds(1, now + 90) == pytest.approx(10.0)


def test_the_pace_of_an_hour_ago_is_forgotten() -> None:
    """A quiet time that long is another time; what was measured before is not mixed into what comes."""
    pace = Pace()
    now = steady(pace, start=0.0, every=10.0, turns=10)
    pace.crowded(now, False)
    assert pace.seconds(1, now + 599) == pytest.approx(10.0)
    assert pace.seconds(1, now + 601) is None
    now = steady(pace, start=now + 3600, every=0.1, turns=5)
    assert pace.seconds(1, now) == pytest.approx(0.1)


def test_a_change_of_pace_is_noticed() -> None:
    """Only the last minute counts where that has turns enough."""
    pace = Pace()
    now = steady(pace, start=0.0, every=0.1, turns=500)
    now = steady(pace, start=now, every=2.0, turns=40)
    assert pace.seconds(1, now) == pytest.approx(2.0, rel=0.1)


def test_many_that_end_together_are_one_measure() -> None:
    """Sixty-four abreast that take a minute each: about one turn a second, whenever it is asked."""
    pace = Pace()
    pace.crowded(0.0, True)
    for clump in (60.0, 120.0, 180.0):
        for number in range(64):
            pace.turn(clump + number * 0.001, abreast=64)
    for later in (0.1, 20.0, 50.0):
        assert pace.seconds(64, 180.0 + later, abreast=64) == pytest.approx(60.0, rel=0.5)


def test_times_that_are_noticed_late_and_out_of_order_do_no_harm() -> None:
    """A clock that seems to run backwards is not a negative wait."""
    pace = Pace()
    pace.crowded(10.0, True)
    for at in (12.0, 11.0, 11.5, 9.0):
        pace.turn(at)
    pace.crowded(9.0, False)
    assert (pace.seconds(1, 8.0) or 0.0) >= 0.0


def test_what_is_told_is_spread_over_a_time_as_long_as_the_wait() -> None:
    """Two clients that were turned away together do not come back together; never 0, never over two minutes (HDR-6)."""
    assert pause(10.0, lambda: 0.0) == 5.0
    assert pause(10.0, lambda: 1.0) == 15.0
    assert pause(None, lambda: 0.5) == UNMEASURED_PAUSE
    assert pause(0.0, lambda: 0.0) > 0.0
    assert pause(10_000.0, lambda: 1.0) <= 120.0
    rng = random.Random(7)
    told = [pause(10.0, rng.random) for _ in range(1000)]
    assert [sum(5 + step <= each < 6 + step for each in told) > 50 for step in range(10)] == [True] * 10
