"""The judges can say no: a vector with a wrong expectation fails, whichever member is wrong, and says why."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from lastword._contract import load
from lastword.conformance._client import play_client
from lastword.conformance._decode import play_decode


@pytest.mark.parametrize(
    ("member", "wrong", "why"),
    [
        ("outcome", "completed", "outcome is incomplete (stream_incomplete), not completed"),
        ("code", "cancelled", "code is stream_incomplete, not cancelled"),
        ("text", "Hello!", "text is 'Hello', not 'Hello!'"),
        ("texts", {"0": "Hello", "1": ""}, "texts is"),
        ("finish_reasons", {"0": "stop"}, "finish_reasons is"),
        ("usage", {"prompt_tokens": 1}, "usage is None"),
        ("category", "fixable", "category is 'retryable', not 'fixable'"),
        ("retryable", False, "retryable is True, not False"),
        ("status", 200, "status is None, not 200"),
        ("param", "n", "param is None, not 'n'"),
        ("request_id", "r", "request_id is"),
        ("retry_after_ms", 1, "retry_after_ms is None, not 1"),
        ("details", {"chunks": 3}, "details has chunks 2, not 3"),
        ("message_contains", ["cheese"], "message lacks 'cheese'"),
        ("warnings", 1, "warnings are [], not 1 of them"),
        ("tool_calls", [{"name": "f", "arguments": "{}"}], "tool_calls are []"),
        ("requests", 2, "the server counted 1 requests, not 2"),
        ("connections", 0, "the server counted 1 connections, not 0"),
        ("within_ms", 0.001, "not 0.001 at most"),
    ],
)
def test_a_wrong_expectation_of_a_call_is_noticed(member: str, wrong: object, why: str) -> None:
    vector: dict[str, Any] = deepcopy(load("vectors/client/ending.no-finish-no-done.json"))
    assert play_client(vector, "event", "sync") == []
    vector["expect"][member] = wrong
    problems = play_client(vector, "event", "sync")
    assert len(problems) == 1
    assert why in problems[0]


def test_a_retry_that_comes_too_early_is_noticed() -> None:
    failing = {"status": 503, "headers": {"retry-after-ms": "50"}, "steps": [{"text": ""}]}
    vector: dict[str, Any] = deepcopy(load("vectors/client/ending.whole.json"))
    vector["server"].insert(0, failing)
    vector["call"]["retries"] = 1
    vector["expect"].update(requests=2, gaps_ms=[{"min": 5000, "max": 9000}])
    (problem,) = play_client(vector, "event", "sync")
    assert problem.startswith("the client waited ")
    vector["expect"]["gaps_ms"] = [{"min": 50, "max": 5000}]
    assert play_client(vector, "event", "sync") == []


def test_what_the_server_found_counts() -> None:
    vector: dict[str, Any] = deepcopy(load("vectors/client/ending.whole.json"))
    vector["server"][0]["request"] = {"headers": {"x-request-attempt": "2"}}
    assert play_client(vector, "event", "async") == ["request 1: its header x-request-attempt is '1', not '2'"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"events": []}, "4 events, not 0"),
        ({"outcome": "failed"}, "outcome is completed (None), not failed"),
        ({"text": ""}, "text is"),
    ],
)
def test_a_wrong_expectation_of_the_core_is_noticed(change: dict[str, object], why: str) -> None:
    vector: dict[str, Any] = deepcopy(load("vectors/decode/sse.lf.json"))
    assert play_decode(vector, "7") == []
    vector["expect"].update(change)
    (problem,) = play_decode(vector, "7")
    assert why in problem
