"""Tokens that nobody counted: a report says so, and what to do about it, where nought would be wrong."""

from __future__ import annotations

import json
from pathlib import Path

from tests.report.conftest import gone, record, rejected, write
from tests.report.test_account import account
from tests.report.test_command import report, rows
from tests.report.test_page import parsed

from lastword.report._page import page

ASK = "ask for stream_options.include_usage."


def test_tokens_that_nobody_counted_are_told_as_that(tmp_path: Path) -> None:
    """Each figure that is made of them; null in JSON."""
    path = write(tmp_path / "a.jsonl", *(record(number, completion_tokens=None) for number in range(6)), rejected(6))
    done = report(path)
    told = rows(done.stdout)
    for name in ("tokens generated", "useful: of completed answers", "wasted: for clients that left"):
        assert told[name] == ["not counted"]
    assert told["useful tokens per second"] == ["not counted"]
    assert f"6 of 6 completed answers have no token count: {ASK}" in done.stdout
    as_json = json.loads(report(path, "--json").stdout)
    for name in (
        "useful_tokens",
        "wasted_tokens",
        "lost_tokens",
        "useful_tokens_per_second",
        "tokens_after_disconnect",
    ):
        assert as_json[name] is None
    assert as_json["timeline"]["ended"]["useful_tokens"] is None
    assert as_json["completed_uncounted"] == 6


def test_a_sum_that_is_not_of_all_says_so(tmp_path: Path) -> None:
    """Of the account that it is in."""
    taken = record(), record(1), gone(2)
    path = write(tmp_path / "a.jsonl", *taken)
    some = write(tmp_path / "b.jsonl", *taken, record(4, completion_tokens=None))
    done = report(some, "--before", path, "--by-model")
    assert f" after: 1 of 3 completed answers have no token count: {ASK}\n" in done.stdout
    assert " before: " not in done.stdout
    assert rows(done.stdout)["tokens generated"] == ["120", "120", "="]
    assert json.loads(report(some, "--json").stdout)["useful_tokens"] == 80


def test_a_chart_without_data_says_why_and_what_gives_them() -> None:
    """In its frame's place."""
    nothing = record(completion_tokens=None, queue_time_ms=None, generation_time_ms=None)
    text = page([account(nothing)], ["x"])
    told = parsed(text).text
    assert text.count('class="plot"') == text.count("<details>") == 1, "of how attempts ended"
    assert f"Nobody counted the tokens: {ASK}" in told
    assert "No record has a queue time" in told
    assert told.count("--enable-per-request-metrics") == 2
    assert "not counted" in told


def test_a_chart_of_what_has_not_been_has_no_remedy() -> None:
    """Nothing is missing."""
    told = parsed(page([account(rejected())], ["x"])).text
    assert "No tokens were generated." in told
    assert "No attempt was admitted." in told
    assert ASK not in told
    told = parsed(page([account(record(side="client", queue_time_ms=None))], ["x"])).text
    assert "Clients do not see the queue" in told


def test_of_two_charts_each_speaks_for_itself() -> None:
    """One may have data where the other has none."""
    text = page([account(record(completion_tokens=None)), account(record())], ["x", "y"])
    assert f"before: Nobody counted the tokens: {ASK}" in parsed(text).text
    assert text.count('class="plot"') == 7
