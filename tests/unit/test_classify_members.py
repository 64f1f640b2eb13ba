"""What else an error tells: hints, ids, origin, the server's own word on retrying, and codes of later contracts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest
from tests.unit.answers import NOW, classify, openai

from lastword._classify import (
    MAX_RAW,
    classify_frame,
    classify_response,
    error_body,
    make_error,
    request_id_of,
    retry_after_seconds,
)
from lastword._codes import CODES, Category, Code


@pytest.fixture
def _far_from_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A local time that is not UTC, so that reading a date in it shows."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XXX-12")
        time.tzset()
        yield
    time.tzset()


def test_the_contracts_own_body_is_read_back_whole() -> None:
    """error_body and classify_response are inverse to each other."""
    sent = make_error(
        Code.QUEUE_OVERLOADED,
        "8 requests wait already",
        origin="shim",
        type="server_error",
        param="p",
        request_id="r-1",
        retry_after=1.5,
        details={"queued": 8, "upstream_code": "busy"},
    )
    got = classify(503, error_body(sent))
    names = ("code", "category", "outcome", "retryable", "message", "type", "param", "request_id", "retry_after")
    assert {name: getattr(got, name) for name in names} == {name: getattr(sent, name) for name in names}
    assert (got.details, got.origin, got.should_retry, got.status) == (sent.details, "shim", True, 503)


def test_a_relayed_upstream_code_does_not_make_a_known_code_unsure() -> None:
    """Only a code that is unknown here is held back, not one that a gateway has classified."""
    sent = make_error(Code.QUEUE_OVERLOADED, "m", origin="gateway", details={"upstream_code": "busy"})
    got = classify_frame("", error_body(sent))
    assert got is not None
    assert got.retryable


def test_error_body_has_exactly_the_contracts_members() -> None:
    """A superset of OpenAI's error object (ERR-1)."""
    info = make_error(Code.CONTEXT_LENGTH_EXCEEDED, "m", details={"a": 1})
    assert error_body(info) == {
        "error": {
            "message": "m",
            "type": "context_length_exceeded",
            "param": None,
            "code": "context_length_exceeded",
            "category": "fixable",
            "retryable": False,
            "retry_after_ms": None,
            "request_id": None,
            "origin": "client",
            "details": {"a": 1},
            "contract": "1",
        }
    }


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, 0), (0.0001, 1), (1.5, 1500), (1e308, 10**12)])
def test_a_hint_is_written_in_whole_milliseconds(seconds: float, expected: int) -> None:
    """Rounded up, so that nobody comes early, and within what any receiver can read."""
    assert (
        error_body(make_error(Code.QUEUE_OVERLOADED, "m", retry_after=seconds))["error"]["retry_after_ms"] == expected
    )


@pytest.mark.parametrize(
    ("status", "members", "category", "retryable"),
    [
        (400, {"category": "retryable"}, "retryable", True),
        (503, {"category": "fixable"}, "fixable", False),
        (503, {"category": "cancelled"}, "cancelled", False),
        (503, {"contract": "2"}, "retryable", True),
        (400, {"contract": "2"}, "fixable", False),
        (418, {"contract": "2"}, "fixable", False),
        (400, {"category": "retryable", "retryable": False}, "retryable", False),
        (503, {"category": "strange", "contract": "2"}, "retryable", True),
    ],
)
def test_a_code_of_a_later_contract(status: int, members: dict[str, Any], category: str, retryable: bool) -> None:
    """It stays as it came; the body's category, else the status, says what to do with it (ERR-6)."""
    info = classify(status, {"error": {"message": "m", "code": "brand_new", **members}})
    outcome = "cancelled" if category == "cancelled" else "failed"
    assert (info.code, info.category, info.outcome, info.retryable) == ("brand_new", category, outcome, retryable)


def test_a_code_of_a_later_contract_in_a_frame_is_not_guessed_retryable() -> None:
    """Within a stream there is no status to go by."""
    info = classify_frame("", {"error": {"message": "m", "code": "brand_new", "contract": "2"}})
    assert info is not None
    assert (info.code, info.category, info.retryable) == ("brand_new", "fixable", False)


def test_a_foreign_code_is_kept_in_the_details() -> None:
    """Not the contract's and of no known server: visible, and the status decides."""
    info = classify(503, openai("x", "brand_new"))
    assert (info.code, info.details) == (Code.ENGINE_UNAVAILABLE, {"upstream_code": "brand_new"})


@pytest.mark.parametrize(
    ("word", "retryable", "should_retry"),
    [("true", True, True), ("false", False, False), (" FALSE ", False, False), ("maybe", True, None), ("", True, None)],
)
def test_x_should_retry_is_the_servers_word(word: str, retryable: bool, should_retry: bool | None) -> None:
    """False takes back, true alone gives nothing (RTY-8)."""
    info = classify(503, "", x_should_retry=word)
    assert (info.retryable, info.should_retry) == (retryable, should_retry)


def test_x_should_retry_true_makes_nothing_retryable() -> None:
    """Not a fixable code, nor one whose body says no."""
    assert not classify(400, "", x_should_retry="true").retryable
    assert not classify(503, {"error": {"message": "m", "retryable": False}}, x_should_retry="true").retryable


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "5"}, 5.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1_000"}, None),
        ({"retry-after": "\u0665"}, None),
        ({"retry-after": " 5 "}, 5.0),
        ({"retry-after": "5e0"}, 5.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1" * 5000}, None),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": formatdate(NOW + 7, usegmt=True)}, 7.0),
        ({"retry-after": formatdate(NOW - 7, usegmt=True)}, 0.0),
        ({"retry-after": "Fri Jan 15 08:00:07 2027"}, 7.0),
        ({"retry-after": "Fri, 15 Jan 2027 09:00:07 +0100"}, 7.0),
        ({"retry-after": "Fri, 99 Jan 2027 09:00:07 GMT"}, None),
    ],
)
@pytest.mark.usefixtures("_far_from_greenwich")
def test_hints_in_headers(headers: dict[str, str], expected: float | None) -> None:
    """Milliseconds before seconds before an HTTP date in any of its forms; the rest is no hint (RTY-4)."""
    assert retry_after_seconds(headers, now=NOW) == expected


def test_a_hint_in_a_header_goes_before_one_in_the_body() -> None:
    """Gateways add headers; without one the body's milliseconds hold."""
    body = {"error": {"message": "m", "code": "queue_overloaded", "retry_after_ms": 250}}
    assert [classify(503, body).retry_after, classify(503, body, retry_after="2").retry_after] == [0.25, 2.0]


@pytest.mark.parametrize("value", [True, -1, [], {}, "x", None, 10**400, float("inf")])
def test_a_hint_that_is_no_number_is_none(value: object) -> None:
    """Whatever stands in ``retry_after_ms``."""
    info = classify_frame("", {"error": {"message": "m", "retry_after_ms": value}})
    assert info is not None
    assert info.retry_after is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-request-id": "a", "request-id": "b"}, "a"),
        ({"x-request-id": "", "request-id": "b"}, "b"),
        ({"apim-request-id": "c"}, "c"),
        ({"x-litellm-call-id": "d"}, "d"),
        ({}, None),
    ],
)
def test_request_ids_in_headers(headers: dict[str, str], expected: str | None) -> None:
    """The first of the field's headers that has one."""
    assert request_id_of(headers) == expected


def test_a_request_id_in_the_body_is_used_if_no_header_has_one() -> None:
    """Anthropic sends both; a stream has only the body."""
    body = {"type": "error", "error": {"type": "api_error", "message": "m"}, "request_id": "req_1"}
    assert [classify(500, body).request_id, classify(500, body, request_id="h").request_id] == ["req_1", "h"]


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (500, {"error": {"message": "m"}}, "engine"),
        (500, {"error": {"message": "m", "origin": "shim"}}, "shim"),
        (500, {"error": {"message": "m", "origin": "moon"}}, "engine"),
        (500, {"error": {"message": "m", "origin": ["shim"]}}, "engine"),
        (502, "<html>", "gateway"),
        (503, "", "engine"),
    ],
)
def test_origin(status: int, body: object, expected: str) -> None:
    """Who said so: engines speak JSON, gateways text and HTML, and the contract's body names it."""
    assert classify(status, body).origin == expected


def test_raw_is_capped() -> None:
    """A page of megabytes is not carried about."""
    assert len(classify(500, "x" * 10_000).raw or "") == MAX_RAW


def test_a_message_is_made_up_only_where_there_is_none() -> None:
    """It names the code, so that it is not mistaken for the server's."""
    info = classify(500, {"error": {"message": ""}})
    assert info.message == "the server reported internal_server_error without a message"


def test_the_clock_is_read_if_none_is_passed() -> None:
    """A date long past is no wait, whatever the time is."""
    info = classify_response(503, {"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, b"")
    assert info is not None
    assert info.retry_after == 0.0


@pytest.mark.parametrize("code", list(Code))
def test_make_error_takes_everything_from_the_registry(code: Code) -> None:
    """Category, outcome and retryability are the code's; retryable may be overruled."""
    known = CODES[code]
    info = make_error(code, "m", origin="shim")
    assert (info.code, info.category, info.outcome) == (code, known.category, known.outcome)
    assert info.retryable == (known.category is Category.RETRYABLE)


def test_a_timer_of_our_own_is_worth_no_retry() -> None:
    """The server may still be at it; only a connection that was not made is tried again (RTY-9)."""
    timers = (Code.CONNECT_TIMEOUT, Code.FIRST_TOKEN_TIMEOUT, Code.GENERATION_STALLED, Code.DEADLINE_EXCEEDED)
    assert [make_error(code, "m").retryable for code in timers] == [True, False, False, False]


def test_an_unknown_code_beside_a_known_type_is_what_the_type_says() -> None:
    """There is more to go by than the code that nobody knows."""
    info = classify_frame("", {"error": {"message": "m", "code": "x", "type": "overloaded_error"}})
    assert info is not None
    assert (info.code, info.retryable, info.details) == ("queue_overloaded", True, {"upstream_code": "x"})


def test_a_message_can_always_be_printed() -> None:
    """Half a surrogate pair and a megabyte are a server's privilege and no reader's burden."""
    info = classify_frame("", {"error": {"message": "\ud800" + "x" * 1_000_000, "code": 400}})
    assert info is not None
    assert info.message.encode() == ("?" + "x" * (MAX_RAW - 1)).encode()
