"""Retries go by code and are counted by the server (RTY rules)."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.sdk.wire import DONE, MESSAGES, chunk, client_for, events, takes

from lastword import Client, LastwordError, RequestTimeout, RetryPolicy, Stream, Timeouts
from lastword.testing import ScriptedServer, answer, failure
from lastword.testing import stream as script


def refusal(status: int, error: dict[str, Any], **headers: Any) -> dict[str, Any]:
    """An HTTP error with a JSON body."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"status": status, "headers": names, "steps": [{"json": {"error": error}}]}


BUSY = refusal(503, {"message": "busy", "code": "queue_overloaded"})


def test_a_retryable_error_is_retried_with_the_same_id_and_a_counted_attempt() -> None:
    """x-request-id stays, x-request-attempt counts, request-timeout-ms shrinks (HDR rules)."""
    with ScriptedServer([BUSY, BUSY, answer("hi")]) as server:
        with client_for(server, attempts=3, timeouts=Timeouts(total=10)) as client:
            done = client.chat.completions.create(model="m", messages=MESSAGES)
    assert done.choices[0].message.content == "hi"
    heads = [request.headers for request in server.requests]
    assert len({head["x-request-id"] for head in heads}) == 1
    assert [head["x-request-attempt"] for head in heads] == ["1", "2", "3"]
    left = [int(head["request-timeout-ms"]) for head in heads]
    assert 10_000 >= left[0] > left[1] > left[2] > 0
    assert done._request_id == heads[0]["x-request-id"]


def test_no_deadline_no_header() -> None:
    """request-timeout-ms is left out where there is no deadline."""
    with ScriptedServer([answer("hi")]) as server, client_for(server, timeouts=Timeouts(total=None)) as client:
        client.chat.completions.create(model="m", messages=MESSAGES)
    assert "request-timeout-ms" not in server.requests[0].headers


FIXABLE = [
    (400, {"message": "no", "type": "BadRequestError", "code": 400}),
    (500, {"message": "too long", "code": "context_length_exceeded"}),
    (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}),
    (503, {"message": "no", "code": "x", "category": "fixable"}),
    (504, {"message": "too slow", "code": "generation_timeout"}),
]


@pytest.mark.parametrize(("status", "error"), FIXABLE)
def test_what_the_caller_can_fix_is_never_sent_twice(status: int, error: dict[str, Any]) -> None:
    """Whatever the status says, and whatever x-should-retry says."""
    with ScriptedServer([refusal(status, error, x_should_retry="true")]) as server:
        with client_for(server, attempts=5) as client, pytest.raises(LastwordError) as caught:
            client.chat.completions.create(model="m", messages=MESSAGES)
    assert caught.value.category == "fixable"
    assert len(server.requests) == 1


def test_a_server_that_says_no_is_obeyed() -> None:
    """x-should-retry: false stops a retryable error."""
    with ScriptedServer([refusal(503, {"message": "busy"}, x_should_retry="false")]) as server:
        with client_for(server, attempts=5) as client, pytest.raises(LastwordError) as caught:
            client.chat.completions.create(model="m", messages=MESSAGES)
    assert not caught.value.retryable
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "1"}, 1.0),
        ({"retry-after": "0.6"}, 0.6),
        ({"retry-after-ms": "700"}, 0.7),
        ({"retry-after": {"http_date_in_s": 2}}, 1.0),
        ({"retry-after": "soon"}, 0.0),
    ],
)
def test_a_hint_is_waited_for_and_never_cut_short(headers: dict[str, Any], seconds: float) -> None:
    """Seconds, fractions, milliseconds and HTTP dates; what cannot be read is no hint."""
    busy = {**BUSY, "headers": headers}
    with ScriptedServer([busy, answer("hi")]) as server, takes(seconds, seconds + 5):
        with client_for(server, attempts=2) as client:
            client.chat.completions.create(model="m", messages=MESSAGES)


def test_a_hint_beyond_the_deadline_fails_now() -> None:
    """Waiting in vain is not an option; the hint is on the error."""
    busy = {**BUSY, "headers": {"retry-after": "5"}}
    with (
        ScriptedServer([busy]) as server,
        takes(0, 4),
        client_for(server, attempts=3, timeouts=Timeouts(total=2)) as client,
    ):
        with pytest.raises(LastwordError) as caught:
            client.chat.completions.create(model="m", messages=MESSAGES)
    assert caught.value.retry_after == 5
    assert len(server.requests) == 1


def test_an_error_event_before_any_chunk_is_retried() -> None:
    """The first event of a stream may be an error: nothing has been handed over yet."""
    failed = {"status": 200, "steps": [{"data": {"error": {"message": "busy", "code": "server_is_overloaded"}}}]}
    with ScriptedServer([failed, script("hi")]) as server, client_for(server, attempts=2) as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        list(stream)
    assert stream.text == "hi"
    assert [attempt.code for attempt in stream.outcome.attempts] == ["queue_overloaded", None]  # type: ignore[union-attr]
    assert len(server.requests) == 2


@pytest.mark.parametrize("end", [{"end": "truncate"}, {"end": "reset"}, {"data": {"error": {"code": 503}}}])
def test_nothing_is_retried_once_a_chunk_has_been_handed_over(end: dict[str, Any]) -> None:
    """The commit point (RTY-1)."""
    with ScriptedServer([events("Hel", end=end)]) as server, client_for(server, attempts=5) as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        with pytest.raises(LastwordError) as caught:
            list(stream)
    assert caught.value.partial.text == "Hel"
    assert len(server.requests) == 1


def test_the_clients_own_timers_are_not_retried() -> None:
    """The server may still be at it."""
    silent = {"status": 200, "steps": [chunk({"role": "assistant"}), {"end": "stall"}]}
    with (
        ScriptedServer([silent]) as server,
        client_for(server, attempts=5, timeouts=Timeouts(first_token=0.2)) as client,
    ):
        with pytest.raises(RequestTimeout):
            list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))
    assert len(server.requests) == 1


def test_a_dead_engine_is_tried_once_more() -> None:
    """engine_unavailable: once, however many attempts are allowed."""
    dead = failure(503, "engine_unavailable")
    with ScriptedServer([dead, dead]) as server, client_for(server, attempts=5) as client, pytest.raises(LastwordError):
        client.chat.completions.create(model="m", messages=MESSAGES)
    assert len(server.requests) == 2


def test_the_budget_is_the_clients_and_not_the_calls() -> None:
    """Calls that fail spend one budget; when it is gone, each call gets one attempt."""
    retry = RetryPolicy(max_attempts=3, base_delay=0.001, max_delay=0.001, budget=20)
    with ScriptedServer([BUSY] * (3 + 3 + 1 + 1)) as server, client_for(server, retry=retry) as client:
        for _ in range(4):
            with pytest.raises(LastwordError):
                client.chat.completions.create(model="m", messages=MESSAGES)
    assert len(server.requests) == 8


def test_a_connection_closed_while_idle_is_not_the_callers_problem() -> None:
    """vLLM closes idle connections; the next call opens another."""
    closing = {**answer("one"), "then": "close"}
    with ScriptedServer([closing, answer("two")]) as server, client_for(server) as client:
        client.chat.completions.create(model="m", messages=MESSAGES)
        time.sleep(0.1)
        done = client.chat.completions.create(model="m", messages=MESSAGES)
    assert done.choices[0].message.content == "two"
    assert server.connections == 2


def test_streams_in_a_row_use_one_connection() -> None:
    """A finished stream gives its connection back; so do error answers and error events."""
    failed = {"status": 200, "steps": [{"data": {"error": {"message": "no", "code": 400}}}]}
    exchanges = [script("a"), failed, refusal(400, {"message": "no"}), script("b"), answer("c"), script("d")]
    with ScriptedServer(exchanges) as server, client_for(server) as client:
        outcomes = []
        for number in range(6):
            value, outcome = client.with_outcome.chat.completions.create(
                model="m", messages=MESSAGES, stream=number != 4
            )
            if isinstance(value, Stream):
                list(value)
                outcome = value.outcome
            outcomes.append(str(outcome))
    assert outcomes == ["completed", "failed", "failed", "completed", "completed", "completed"]
    assert server.connections == 1


def test_a_server_that_lingers_after_done_costs_a_connection_and_no_time() -> None:
    """[DONE] ends the stream whatever the server does with the socket."""
    steps = [chunk({"content": "a"}), *DONE, {"delay_ms": 12_000}]
    lingering = {"status": 200, "steps": steps}
    with ScriptedServer([lingering], strict=False) as server, takes(0, 6), client_for(server) as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        list(stream)
    assert stream.outcome is not None
    assert stream.outcome.completed


def test_nobody_listens() -> None:
    """A refused connection is retried and then said to be one."""
    with ScriptedServer() as server:
        url = server.base_url
    with Client(base_url=url, retry=RetryPolicy(max_attempts=3, base_delay=0.01)) as client:
        with pytest.raises(LastwordError) as caught:
            client.models.list()
    assert (caught.value.code, len(caught.value.attempts)) == ("connection_failed", 3)
