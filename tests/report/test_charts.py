"""What the charts show of little traffic and of much, of two evenings of unlike length, and of times below a millisecond."""

from __future__ import annotations

import re

import pytest
from tests.report.conftest import record, rejected
from tests.report.test_account import account
from tests.report.test_page import parsed

from lastword.report import _numbers as say
from lastword.report._account import Account
from lastword.report._page import page
from lastword.report._timeline import Timeline


def charts(*accounts: Account) -> list[str]:
    """The page's figures as text of its source."""
    return re.findall(r"<figure>.*?</figure>", page(accounts, ["x"] * len(accounts)), re.DOTALL)


def titles(figure: str) -> list[str]:
    """What the bars say."""
    return re.findall(r"<g><title>(.*?)</title>", figure)


def marks(figure: str) -> list[float]:
    return [float(at) for at in re.findall(r'<line x1="([\d.]+)%"[^>]*class="mark"', figure)]


@pytest.mark.parametrize("number", [1, 4, 40, 400])
def test_a_bar_is_of_several_attempts(number: int) -> None:
    """Of a second at least, and five on average: one alone in an eighth of a second is no eight a second."""
    ended = account(*(record(each, total_time_ms=each * 37 % 1000) for each in range(number)))
    (chart, *_) = charts(ended)
    assert sum(int(each) for each in re.findall("completed (\\d+)", " ".join(titles(chart)))) == number
    assert len(titles(chart)) <= max(number / 5, 1)
    heights = re.findall(r'class="up".*?>([\d.]+)</text></svg>', chart)
    assert float(heights[0]) <= 1.0


def test_bins_that_are_shown_lose_nothing() -> None:
    """The last takes what is left, or is shorter: it ends with the data."""
    line = Timeline(1)
    for at in range(1000, 1103):
        line.bin(at)[0] += 1
    shown = line.wider(8)
    assert sum(sums[0] for _, _, sums in shown) == 103
    assert [begin for begin, _, _ in shown[:2]] == [1000, 1008]
    assert [begin + width for begin, width, _ in shown] == [*(begin for begin, _, _ in shown[1:]), 1103]
    assert all(4 <= width <= 12 for _, width, _ in shown)


def test_two_evenings_stand_on_the_same_scale_of_time() -> None:
    """The shorter one ends before its axis does; that is told."""
    long, short = (account(*(record(each) for each in range(number))) for number in (100, 50))
    (chart, *_) = charts(long, short)
    assert "Both axes are 1 min 40 s long, each from its own beginning." in chart
    assert len(re.findall(r'class="last">18:01:41<', chart)) == 2


def test_evenings_of_very_unlike_length_have_axes_of_their_own() -> None:
    """A minute is nothing beside a day; that is told too."""
    long, short = (account(*(record(each) for each in range(number))) for number in (1000, 50))
    (chart, *_) = charts(long, short)
    assert re.search(r"The axes differ in length: before 16 min 4\d s, after 50.0 s\.", chart)


def test_axes_name_their_zone() -> None:
    """On each of the charts over time."""
    ended, tokens, *_ = charts(account(record()))
    assert "attempts per second, times in UTC" in ended
    assert "tokens per second, times in UTC" in tokens


def test_half_of_a_distribution_can_be_seen() -> None:
    """As a sentence and as a line in its place."""
    _, _, queue, _ = charts(account(*(record(each, queue_time_ms=10.0 if each else 100.0) for each in range(9))))
    assert "per cent of attempts. Half within 10 ms, 99 % within 100 ms; the line is at half.</p>" in queue
    assert marks(queue) == pytest.approx([0], abs=0.5), "the axis begins at 10 ms"


def test_less_than_a_millisecond_has_a_bar_of_its_own() -> None:
    """Before the axis's 1 ms."""
    taken = [record(each, queue_time_ms=0.2) for each in range(3)]
    _, _, queue, _ = charts(account(*taken, record(4, queue_time_ms=1.2)))
    assert titles(queue) == ["under 1.0 ms: 3 attempts, 75.0 %", "1.0 ms – 1.5 ms: 1 attempt, 25.0 %"]
    (one,) = re.findall(r'x="([\d.]+)%"[^>]*>1 ms<', queue)
    assert float(one) == pytest.approx(100 / 7, abs=0.1)
    assert marks(queue) == pytest.approx([50 / 7], abs=0.1)


def test_what_a_rate_is_of_is_told_beside_it() -> None:
    """For those who read nothing else."""
    told = parsed(page([account(record(), rejected(1))], ["x"])).text
    assert "effective completion ratecompleted of admitted attempts" in told


def test_a_change_from_nothing_is_told() -> None:
    """There is no ratio."""
    assert [say.change(0, 18), say.change(0, 0), say.change(2, 1), say.change(None, 1)] == [
        "from 0",
        "=",
        "−50.0 %",
        "",
    ]
