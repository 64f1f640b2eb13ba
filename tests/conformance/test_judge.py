"""The judges can say no: a vector with a wrong expectation fails, whichever member is wrong, and says why."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import httpx
import lastword_async
import lastword_sync
import pytest

from lastword._contract import load
from lastword.conformance._faults import Fault, settle
from lastword.conformance._results import Case, CaseResult, Verdict
from lastword.conformance.client._player import play_client
from lastword.conformance.core._decode import play_decode

CUT: Mapping[str, Any] = load("vectors/client/ending.no-finish-no-done.json")
WHOLE: Mapping[str, Any] = load("vectors/client/ending.whole.json")


def play(vector: Mapping[str, Any]) -> CaseResult:
    return play_client(Case("client", vector), lambda message, _: {"result": lastword_sync.run(message)})


def told(vector: Mapping[str, Any], **result: Any) -> CaseResult:
    """What is made of a client that makes the call, and then says something of its own."""

    def ask(message: Mapping[str, Any], limit: float) -> dict[str, Any]:
        lastword_async.run(message)
        return {"result": result}

    return play_client(Case("client", vector), ask)


def with_expected(vector: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    changed: dict[str, Any] = deepcopy(dict(vector))
    changed["expect"].update(members)
    return changed


WRONG_OF_A_CALL: list[tuple[str, object, str, str]] = [
    ("outcome", "completed", "false_alarm", "outcome is incomplete (stream_incomplete), not completed"),
    ("outcome", "failed", "wrong_code", "outcome is incomplete (stream_incomplete), not failed"),
    ("code", "cancelled", "wrong_code", "code is stream_incomplete, not cancelled"),
    ("text", "Hello!", "detail", "text is 'Hello', not 'Hello!'"),
    ("texts", {"0": "Hello", "1": ""}, "detail", "texts is"),
    ("finish_reasons", {"0": "stop"}, "detail", "finish_reasons is"),
    ("usage", {"prompt_tokens": 1}, "detail", "usage is None"),
    ("category", "fixable", "wrong_code", "category is 'retryable', not 'fixable'"),
    ("retryable", False, "wrong_code", "retryable is True, not False"),
    ("status", 200, "detail", "status is None, not 200"),
    ("param", "n", "detail", "param is None, not 'n'"),
    ("request_id", "r", "detail", "request_id is '$request_id', not 'r'"),
    ("retry_after_ms", 1, "detail", "retry_after_ms is None, not 1"),
    ("details", {"chunks": 3}, "detail", "details has chunks 2, not 3"),
    ("message_contains", ["cheese"], "detail", "message lacks 'cheese'"),
    ("warnings", 1, "detail", "warnings are [], not 1 of them"),
    ("tool_calls", [{"name": "f", "arguments": "{}"}], "detail", "tool_calls are []"),
    ("requests", 2, "detail", "the server counted 1 requests, not 2"),
    ("requests", 0, "over_retry", "the server counted 1 requests, not 0"),
    ("connections", 0, "leak", "the server counted 1 connections, not 0"),
    ("connections", 2, "detail", "the server counted 1 connections, not 2"),
    ("within_ms", 0.001, "hang", "no answer within the 0.001 ms that the vector gives"),
]


@pytest.mark.parametrize(("member", "wrong", "verdict", "why"), WRONG_OF_A_CALL)
def test_a_wrong_expectation_of_a_call_is_noticed(member: str, wrong: object, verdict: str, why: str) -> None:
    assert play(CUT).verdict is Verdict.RIGHT
    result = play(with_expected(CUT, **{member: wrong}))
    assert result.verdict == verdict
    assert len(result.reasons) == 1
    assert why in result.reasons[0]


def test_other_codes_that_the_rules_allow_are_right() -> None:
    vector = with_expected(CUT, code="cancelled")
    assert play(vector).verdict is Verdict.WRONG_CODE
    vector["expect"]["codes_also_accepted"] = ["stream_incomplete"]
    assert play(vector).verdict is Verdict.RIGHT


def test_a_broken_answer_that_is_called_whole_is_silence_whatever_else_is_wrong() -> None:
    result = told(with_expected(CUT, connections=0), outcome="completed", code=None, text="Hel")
    assert result.verdict is Verdict.SILENT
    assert result.reasons == (
        "outcome is completed (None), not incomplete",
        "the server counted 1 connections, not 0",
        "text is 'Hel', not 'Hello'",
    )
    assert result.said == {"outcome": "completed", "code": None, "text": "Hel"}


def test_what_a_client_has_no_notion_of_is_counted_and_not_compared() -> None:
    vector = with_expected(
        CUT, category="fixable", usage={"prompt_tokens": 1}, message_contains=["x"], details={"a": 1}
    )
    result = told(vector, outcome="incomplete", code="stream_incomplete", text="Hello")
    assert result.verdict is Verdict.RIGHT
    assert {"category", "usage", "message", "details"} <= set(result.unreported)
    assert not {"outcome", "code", "text"} & set(result.unreported)


def test_a_stream_without_any_text_is_not_excused() -> None:
    result = told(CUT, outcome="incomplete", code="stream_incomplete")
    assert (result.verdict, result.reasons) == (Verdict.DETAIL, ("text is '', not 'Hello'",))


def test_an_answer_that_failed_before_there_was_text_is_excused() -> None:
    vector = with_expected(load("vectors/client/answer.cut-chunked.json"), text="Hel")
    result = told(vector, outcome="incomplete", code="stream_incomplete")
    assert (result.verdict, result.unreported[0]) == (Verdict.RIGHT, "text")


def test_a_result_that_is_no_outcome_is_a_broken_protocol() -> None:
    result = told(WHOLE, outcome="completed", code="stream_incomplete")
    assert result.verdict is Verdict.CRASH
    assert result.reasons == (
        "the result is no outcome of the contract: outcome: $.code: 'stream_incomplete' is not of type 'null'",
    )


def test_a_piece_that_is_missing_from_what_is_called_whole_is_silence() -> None:
    for text in ("lo", "Hel", ""):
        result = told(WHOLE, outcome="completed", code=None, text=text)
        assert (result.verdict, result.reasons) == (Verdict.SILENT, (f"text is {text!r}, not 'Hello'",))
    assert told(WHOLE, outcome="completed", code=None, text="Hallo").verdict is Verdict.DETAIL


def test_a_whole_answer_that_was_never_asked_for_is_silence() -> None:
    def ask(message: Mapping[str, Any], limit: float) -> dict[str, Any]:
        return {"result": {"outcome": "completed", "code": None, "text": "Hello"}}

    result = play_client(Case("client", WHOLE), ask)
    assert (result.verdict, result.reasons[0]) == (Verdict.SILENT, "the server counted 0 requests, not 1")


def test_so_is_one_of_several_that_were_not_all_asked_for() -> None:
    vector = with_expected(WHOLE, requests=2)
    vector["server"] *= 2
    vector["call"]["repeat"] = 2
    assert play(vector).verdict is Verdict.RIGHT
    vector["call"]["repeat"] = 1
    result = told(vector, outcome="completed", code=None, text="Hello")
    assert (result.verdict, result.reasons[0]) == (Verdict.SILENT, "the server counted 1 requests, not 2")
    result = told(vector, outcome="failed", code="connection_failed")
    assert (result.verdict, result.reasons[-1]) == (Verdict.DETAIL, "the server counted 1 requests, not 2")


FAILING: Mapping[str, Any] = {"status": 503, "headers": {"retry-after-ms": "50"}, "steps": [{"text": ""}]}


def with_retry(**members: Any) -> dict[str, Any]:
    vector = with_expected(WHOLE, requests=2, **members)
    vector["server"].insert(0, FAILING)
    vector["call"]["retries"] = 1
    return vector


def test_giving_up_where_a_retry_would_have_helped_calls_no_whole_answer_broken() -> None:
    vector = with_retry()
    vector["call"]["retries"] = 0
    result = told(vector, outcome="failed", code="engine_unavailable")
    assert (result.verdict, result.reasons[0]) == (
        Verdict.DETAIL,
        "outcome is failed (engine_unavailable), not completed",
    )


def test_following_a_redirect_is_no_retry() -> None:
    vector = with_expected(load("vectors/client/redirect.301.json"))

    def ask(message: Mapping[str, Any], limit: float) -> dict[str, Any]:
        lastword_sync.run(message)
        url = message["base_url"].removesuffix("/v1") + "/elsewhere"
        assert httpx.get(url, trust_env=False).status_code == 400
        return {"result": {"outcome": "failed", "code": "invalid_request_error"}}

    result = play_client(Case("client", vector), ask)
    assert (result.verdict, result.reasons) == (Verdict.DETAIL, ("request 2 went elsewhere: GET /elsewhere",))


def test_a_connection_that_carried_no_request_does_not_count() -> None:
    def ask(message: Mapping[str, Any], limit: float) -> dict[str, Any]:
        host, port = message["base_url"].removeprefix("http://").removesuffix("/v1").split(":")
        with socket.create_connection((host, int(port))):
            return {"result": lastword_sync.run(message)}

    assert play_client(Case("client", with_expected(WHOLE, connections=1)), ask).verdict is Verdict.RIGHT


def test_an_answer_that_comes_late_and_within_the_calls_own_deadline_is_no_hang() -> None:
    def late(**call: Any) -> CaseResult:
        vector = with_expected(WHOLE, within_ms=1)
        vector["call"].update(call)
        return play(vector)

    assert late(timeouts={"total": 5}).reasons == ("the answer came later than 1 ms",)
    assert late(timeouts={"total": 5}).verdict is Verdict.DETAIL
    assert late(timeouts={"total": 5}, cancel={"after_ms": 4000}).verdict is Verdict.HANG


def test_a_retry_that_comes_too_early_or_too_late_is_noticed() -> None:
    vector = with_retry(gaps_ms=[{"min": 5000, "max": 9000}])
    assert play(vector).reasons == ("retry 1 came earlier than 5000 ms after the answer",)
    vector["expect"]["gaps_ms"] = [{"max": 1}]
    assert play(vector).reasons == ("retry 1 came later than 1 ms after the answer",)
    vector["expect"]["gaps_ms"] = [{"min": 50, "max": 5000}]
    assert play(vector).verdict is Verdict.RIGHT


def test_what_the_server_found_counts() -> None:
    vector = with_expected(WHOLE)
    vector["server"][0]["request"] = {"headers": {"x-request-attempt": "2"}}
    result = play(vector)
    assert (result.verdict, result.reasons) == (
        Verdict.DETAIL,
        ("request 1: its header x-request-attempt is '1', not '2'",),
    )


def test_a_socket_that_stays_open_is_a_leak() -> None:
    vector = with_expected(WHOLE)
    vector["server"][0]["steps"].append({"await": "disconnect", "within_ms": 100})
    result = told(vector, outcome="completed", code=None, text="Hello")
    assert result.verdict is Verdict.LEAK
    assert result.reasons == ("request 1: the client had not left within 100 ms",)
    assert result.wire[-2:] == ("silence: within 100 ms the client must leave: it stays", "the last chunk")


def test_leaving_too_early_is_noticed() -> None:
    vector = with_expected(WHOLE)
    vector["call"]["cancel"] = {"after_events": 1}
    vector["server"][0]["steps"].insert(2, {"delay_ms": 200})
    result = told(vector, outcome="completed", code=None, text="Hello")
    assert result.reasons == ("request 1: the client left before the answer was over",)


def test_who_gives_a_whole_answer_up_may_leave_it() -> None:
    """How soon it does is chance, and would make two reports of one client differ."""
    vector = with_expected(WHOLE)
    vector["call"]["cancel"] = {"after_events": 1}
    vector["server"][0]["steps"].insert(2, {"delay_ms": 200})
    result = told(vector, outcome="incomplete", code="malformed_response", text="Hel")
    assert result.verdict is Verdict.FALSE_ALARM
    assert not any("left" in reason for reason in result.reasons)


def test_the_worst_fault_is_the_verdict() -> None:
    faults = [
        Fault(Verdict.DETAIL, "c"),
        Fault(Verdict.SILENT, "a"),
        Fault(Verdict.LEAK, "b"),
        Fault(Verdict.LEAK, "b"),
    ]
    assert settle(faults) == (Verdict.SILENT, ("a", "b", "c"))
    assert settle([]) == (Verdict.RIGHT, ())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"events": []}, "4 events, not 0"),
        ({"outcome": "failed"}, "outcome is completed (None), not failed"),
        ({"text": ""}, "text is"),
    ],
)
def test_a_wrong_expectation_of_the_core_is_noticed(change: dict[str, object], why: str) -> None:
    vector = with_expected(load("vectors/decode/sse.lf.json"))
    assert play_decode(vector, "7") == []
    vector["expect"].update(change)
    (problem,) = play_decode(vector, "7")
    assert why in problem
