"""Which timer fires next, by a clock that is passed in."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lastword._codes import Code
from lastword._deadline import CODE_OF, WAITED_FOR, Deadline, Timeouts

LIMITS = Timeouts(connect=1, first_token=10, idle=5, total=100)


def deadline(*, stream: bool = True, timeouts: Timeouts = LIMITS) -> Deadline:
    return Deadline(timeouts, stream=stream, now=1000.0)


def test_defaults() -> None:
    """Five seconds to connect, two minutes to the first token, one of silence, ten in all."""
    assert Timeouts() == Timeouts(connect=5.0, first_token=120.0, idle=60.0, total=600.0)


@pytest.mark.parametrize("name", ["connect", "first_token", "idle", "total"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, 2e9, 10**400, "5", True, [], 1j])
def test_a_limit_is_a_number_of_seconds_that_a_clock_can_hold(name: str, value: Any) -> None:
    """Anything else is refused with the field's name."""
    with pytest.raises(ValueError, match=rf"^Timeouts\({name}="):
        Timeouts(**{name: value})


@pytest.mark.parametrize("value", [None, 1, 0.001, 1e9])
def test_none_and_positive_numbers_are_limits(value: float | None) -> None:
    """None switches a timer off."""
    assert Timeouts(idle=value).idle == value


def test_a_stream_first_waits_for_its_first_token() -> None:
    """From the attempt's start."""
    assert deadline().next() == ("first_token", 1010.0)


def test_connecting_has_a_timer_of_its_own() -> None:
    """It begins once, however often it is told, and ends when the connection stands."""
    timers = deadline()
    timers.connecting(1002.0)
    timers.connecting(1003.0)
    assert timers.next() == ("connect", 1003.0)
    timers.connected()
    assert timers.next() == ("first_token", 1010.0)
    timers.connecting(1004.0)
    assert timers.next() == ("connect", 1005.0)


def test_content_starts_the_idle_timer_again() -> None:
    """The first token ends the wait for it for good."""
    timers = deadline()
    timers.progress(1003.0)
    assert timers.next() == ("idle", 1008.0)
    timers.progress(1007.0)
    assert timers.next() == ("idle", 1012.0)


def test_the_callers_own_time_is_not_the_servers_silence() -> None:
    """What is excluded is added to first_token and idle, not to total."""
    timers = deadline()
    timers.exclude(50.0)
    assert timers.next() == ("first_token", 1060.0)
    timers.progress(1060.0)
    timers.exclude(38.0)
    assert timers.next() == ("total", 1100.0)


def test_total_runs_over_all_attempts() -> None:
    """A new attempt begins every other timer afresh (RTY-6)."""
    timers = deadline()
    timers.connecting(1000.0)
    timers.progress(1003.0)
    timers.attempt(1050.0)
    assert timers.next() == ("first_token", 1060.0)
    timers.attempt(1095.0)
    assert (timers.next(), timers.left(1095.0)) == (("total", 1100.0), 5.0)


def test_a_call_without_a_stream_has_connect_and_total() -> None:
    """Content and silence mean nothing there."""
    timers = deadline(stream=False)
    assert timers.next() == ("total", 1100.0)
    timers.progress(1003.0)
    assert timers.next() == ("total", 1100.0)
    timers.connecting(1003.0)
    assert timers.next() == ("connect", 1004.0)


@pytest.mark.parametrize(
    ("off", "expected"),
    [
        ({"connect": None}, ("first_token", 1010.0)),
        ({"connect": None, "first_token": None}, ("total", 1100.0)),
        ({"connect": None, "first_token": None, "total": None}, ("total", math.inf)),
        ({"first_token": None, "total": None}, ("connect", 1001.0)),
    ],
)
def test_timers_that_are_off_do_not_fire(off: dict[str, None], expected: tuple[str, float]) -> None:
    """With all of them off, nothing ever does."""
    limits: dict[str, Any] = {"connect": 1, "first_token": 10, "idle": 5, "total": 100, **off}
    timers = deadline(timeouts=Timeouts(**limits))
    timers.connecting(1000.0)
    assert timers.next() == expected


def test_idle_may_be_off_alone() -> None:
    """Then a stream that has begun has only its total."""
    timers = deadline(timeouts=Timeouts(first_token=10, idle=None, total=100))
    timers.progress(1001.0)
    assert timers.next() == ("total", 1100.0)


@pytest.mark.parametrize(("total", "left"), [(100.0, 70.0), (10.0, -20.0), (None, math.inf)])
def test_left(total: float | None, left: float) -> None:
    """Seconds until total fires, negative once it should have."""
    assert deadline(timeouts=Timeouts(total=total)).left(1030.0) == left


@pytest.mark.parametrize("same", ["first_token", "connect"])
def test_total_wins_a_tie(same: str) -> None:
    """It is the one that ends the whole call."""
    limits: dict[str, Any] = {"connect": None, "first_token": None, "total": 10, same: 10}
    timers = deadline(timeouts=Timeouts(**limits))
    timers.connecting(1000.0)
    assert timers.next() == ("total", 1010.0)


def test_every_timer_has_its_code_and_its_words() -> None:
    """The client's own timers are told apart (TMR-3)."""
    assert CODE_OF == {
        "connect": Code.CONNECT_TIMEOUT,
        "first_token": Code.FIRST_TOKEN_TIMEOUT,
        "idle": Code.GENERATION_STALLED,
        "total": Code.DEADLINE_EXCEEDED,
    }
    assert WAITED_FOR.keys() == CODE_OF.keys()
