"""What is counted as what: by single records, and by an evening that was played, counted again by hand."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.conftest import Evenings, gone, poll, record, records, rejected

from lastword.report import _pairs
from lastword.report._account import MOST_NAMES, TOKENS, Account
from lastword.report._pairs import OTHERS, Pairs
from lastword.report._sketch import Sketch
from lastword.report._timeline import MOST_BINS, Timeline


def account(*taken: dict[str, Any]) -> Account:
    made = Account()
    for each in taken:
        made.take(each, datetime.fromisoformat(each["received_at"]))
    return made


def test_each_attempt_is_counted_under_one_end() -> None:
    """And a client that left is told apart from one that had the request cancelled."""
    cancelled: dict[str, Any] = {
        "state": "cancelled",
        "outcome": "cancelled",
        "error_code": "cancelled",
        "origin": "shim",
    }
    failed: dict[str, Any] = {
        "state": "failed",
        "outcome": "failed",
        "error_code": "generation_stalled",
        "origin": "shim",
    }
    waiting = {"disconnect_phase": "queued", "completion_tokens": 0, "wasted": False, "time_to_first_token_ms": None}
    tally = account(
        record(),
        record(1),
        rejected(2),
        gone(3),
        gone(4, **waiting, queue_time_ms=None),
        record(5, **cancelled),
        record(6, **failed),
    ).main.tally
    assert dict(tally.ends) == {"completed": 2, "rejected": 1, "disconnected": 2, "cancelled": 1, "failed": 1}
    assert (tally.received, tally.admitted, tally.started, tally.completed) == (7, 6, 5, 2)
    assert (tally.left_queued, tally.left_generating) == (1, 1)
    assert tally.completion_rate == 2 / 6
    assert dict(tally.tokens) == {"useful": 80, "wasted": 40, "lost": 80}


def test_wasted_seconds_run_from_the_first_token_until_the_engine_had_stopped() -> None:
    """The total time of one that left ends when he left."""
    left = gone(time_to_first_token_ms=100.0, total_time_ms=600.0, generation_time_after_disconnect_ms=50.0)
    assert account(left, gone(1, time_to_first_token_ms=None)).main.tally.wasted_seconds == pytest.approx(0.55)


def test_waste_that_nobody_counted_is_still_known() -> None:
    """Content was seen (REC-3)."""
    left = gone(completion_tokens=None, tokens_at_disconnect=None, tokens_after_disconnect=None)
    tally = account(left).main.tally
    assert (tally.wasted, tally.uncounted["wasted"], tally.tokens.total()) == (1, 1, 0)


def test_tokens_that_nobody_counted_are_not_none() -> None:
    """Where one answer has a count there is a sum, and how many have none is known."""
    uncounted = record(completion_tokens=None), gone(1, completion_tokens=None), rejected(2)
    tally = account(*uncounted).main.tally
    assert [tally.made(each) for each in TOKENS] == [None] * 3
    assert tally.made(*TOKENS) is None
    some = account(*uncounted, record(3)).main.tally
    assert [some.made(each) for each in TOKENS] == [40, None, 0]
    assert (some.made(*TOKENS), some.uncounted["useful"]) == (40, 1)
    assert account(*uncounted, gone(3)).main.useful_per_second is None


@pytest.mark.parametrize(
    "nothing",
    [
        rejected(),
        record(operation="embeddings", completion_tokens=None),
        gone(disconnect_phase="queued", completion_tokens=None, wasted=False),
        record(
            outcome="failed",
            state="failed",
            error_code="cancelled",
            completion_tokens=None,
            time_to_first_token_ms=None,
        ),
    ],
)
def test_what_has_made_no_tokens_needs_no_count(nothing: dict[str, Any]) -> None:
    """None is the truth there."""
    assert account(nothing).main.tally.made(*TOKENS) == 0


@pytest.mark.parametrize(
    ("known", "started"),
    [
        ({"queue_time_ms": 5.0}, 1),
        ({"time_to_first_token_ms": 5.0}, 1),
        ({"completion_tokens": 1, "wasted": True}, 1),
        ({}, 0),
    ],
)
def test_started_is_what_the_engine_had_begun_with_as_far_as_anything_tells(
    known: dict[str, Any], started: int
) -> None:
    """A queue time, a token, or an end."""
    nothing = {"queue_time_ms": None, "time_to_first_token_ms": None, "completion_tokens": None, "wasted": False}
    assert account(gone(**{**nothing, **known})).main.tally.started == started


def test_the_server_is_believed_where_it_has_left_records() -> None:
    """Else the client."""
    client: dict[str, Any] = {"side": "client"}
    assert account(record(**client), record(1, **client)).side == "client"
    both = account(record(**client), record(1, **client), record())
    assert (both.side, both.main.count) == ("server", 1)


def test_what_asked_for_no_work_is_counted_apart() -> None:
    """However it ended, on either side; a record that does not tell counts as work."""
    work = record(operation="chat"), record(1)
    polls = poll(2), rejected(3, operation=None), gone(4, operation=None), poll(5, side="client")
    found = account(*work, *polls)
    assert (found.main.count, found.main.others, found.sides["client"].others) == (2, 3, 1)
    assert (dict(found.main.tally.ends), found.main.tally.total.count) == ({"completed": 2}, 2)
    assert (found.pairs.requests("server").count, found.pairs.both_sides) == (2, False)
    assert list(found.main.timeline.bins()) == list(account(*work).main.timeline.bins())


def test_polls_of_the_server_do_not_hide_what_its_clients_say() -> None:
    """It has left no record of work."""
    assert account(poll(), record(1, side="client")).side == "client"
    assert account(poll()).is_empty


def test_an_evening_counted_again_by_hand(evenings: Evenings) -> None:
    """Every number that a report tells of it."""
    for path in (evenings.before, evenings.after):
        lines = records(path)
        side = account(*lines).main
        tally = side.tally
        admitted = [each for each in lines if each["state"] != "rejected"]
        done = [each for each in admitted if each["outcome"] == "completed"]
        left = [each for each in admitted if each["client_disconnected"]]
        assert (tally.received, tally.admitted, tally.completed) == (len(lines), len(admitted), len(done))
        assert tally.left_generating == sum(each["disconnect_phase"] == "generating" for each in left)
        assert tally.left_queued == sum(each["disconnect_phase"] == "queued" for each in left)
        assert tally.tokens["useful"] == sum(each["completion_tokens"] for each in done)
        assert tally.tokens["wasted"] == sum(each["completion_tokens"] or 0 for each in left)
        assert tally.wasted == sum(each["wasted"] for each in left)
        assert tally.codes.total() == len(lines) - len(done)
        bins = [sums for _, sums in side.timeline.bins()]
        assert sum(sum(sums[:6]) for sums in bins) == len(lines)
        assert sum(sum(sums[6:]) for sums in bins) == tally.tokens.total()
        assert sum(each.received for each in side.models.values()) == len(lines)


def test_limits_make_the_evening_better(evenings: Evenings) -> None:
    """What the report is there to show: the traffic is the same."""
    before, after = (account(*records(path)) for path in (evenings.before, evenings.after))
    was, now = before.main.tally, after.main.tally
    assert now.tokens["wasted"] < was.tokens["wasted"] / 2
    assert now.completed > was.completed
    assert after.pairs.requests("server").retried > 0
    assert before.pairs.requests("server").count == after.pairs.requests("server").count == 80


def test_names_and_codes_without_end_stay_in_bounds() -> None:
    """The rest is counted together."""
    taken = [rejected(number, model=f"m{number}", error_code="vendor" + "x" * number) for number in range(200)]
    side = account(*taken).main
    assert len(side.models) == MOST_NAMES + 1
    assert side.models[OTHERS].received == 200 - MOST_NAMES
    assert side.tally.received == 200
    assert side.tally.codes.total() == 200


class TestPairs:
    """Requests by their attempts, and both sides' records."""

    def take(self, pairs: Pairs, *taken: dict[str, Any]) -> None:
        for each in taken:
            pairs.take(each)

    def test_attempts_of_one_id_are_one_request(self) -> None:
        """Whether its client counts them or not."""
        pairs = Pairs()
        self.take(pairs, rejected(request_id="a"), record(request_id="a", attempt=2), record(request_id="b"))
        self.take(pairs, rejected(request_id="c"), rejected(request_id="c"), rejected(request_id="c"))
        found = pairs.requests("server")
        assert (found.count, found.completed, found.retried, found.saved) == (3, 2, 2, 1)
        assert dict(found.by_attempts) == {1: 1, 2: 1, 3: 1}

    def test_what_falls_out_of_the_window_is_still_counted(self) -> None:
        """And memory stays bounded."""
        pairs = Pairs(window=10)
        first, second = rejected(), record(attempt=2)
        for number in range(1000):
            self.take(pairs, *({**each, "request_id": f"req-{number}"} for each in (first, second)))
        found = pairs.requests("server")
        assert (found.count, found.retried, found.saved) == (1000, 1000, 1000)
        assert len(pairs._open) == 10
        assert _pairs.WINDOW > 1000

    def test_both_sides_records_of_an_attempt_meet(self) -> None:
        """In any order; those of other attempts do not."""
        pairs = Pairs()
        client: dict[str, Any] = {"side": "client"}
        self.take(pairs, record(), record(**client), record(1, **client), record(1), gone(2))
        self.take(
            pairs, rejected(2, **client, error_code="generation_timeout"), record(3, **client, attempt=2), record(3)
        )
        assert pairs.both_sides
        assert pairs.joined[("completed", "completed")] >= 1
        assert pairs.joined[("generation_timeout", "client_disconnected")] == 1
        assert pairs.joined.total() == 2, "the first came before anybody knew that there are two sides"

    def test_halves_without_their_other_stay_in_bounds(self) -> None:
        """They fall out of the window."""
        pairs = Pairs(window=5)
        self.take(pairs, *(record(number, side=("client", "server")[number % 2]) for number in range(100)))
        assert len(pairs._halves) == 5
        assert pairs.joined.total() == 0


TIMES = st.lists(st.floats(0, 1e7, allow_nan=False), min_size=1, max_size=200)


@given(TIMES, st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_right_to_one_per_cent(values: list[float], share: float) -> None:
    """Of its value."""
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    exact = sorted(values)[max(math.ceil(share * len(values)), 1) - 1]
    assert sketch.quantile(share) == pytest.approx(exact, rel=0.0101, abs=1e-3)
    assert sum(number for _, number in sketch.buckets()) == len(values)


@given(TIMES, TIMES)
def test_merged_sketches_are_one_of_all_values(some: list[float], others: list[float]) -> None:
    """In whatever order."""
    one, other, both = Sketch(), Sketch(), Sketch()
    for value in some:
        one.add(value)
        both.add(value)
    for value in others:
        other.add(value)
        both.add(value)
    one.merge(other)
    assert list(one.buckets()) == list(both.buckets())
    assert (one.count, one.largest, one.quantile(0.9)) == (both.count, both.largest, both.quantile(0.9))


def test_an_empty_sketch_knows_nothing() -> None:
    """And says so."""
    assert Sketch().quantile(0.5) is None


@given(st.lists(st.floats(-1e12, 1e12, allow_nan=False), min_size=1, max_size=100))
def test_a_timeline_loses_nothing_and_stays_small(moments: list[float]) -> None:
    """However far apart they are, in whatever order."""
    line = Timeline(1)
    for at in moments:
        line.bin(at)[0] += 1
    bins = list(line.bins())
    assert sum(sums[0] for _, sums in bins) == len(moments)
    assert len(bins) <= MOST_BINS
    for at in moments:
        assert any(begin <= at < begin + line.width and sums[0] for begin, sums in bins)


def test_a_timeline_without_anything_has_no_bins() -> None:
    """Not one of nothing."""
    assert list(Timeline(2).bins()) == []
