"""Classification: every error of every known server becomes one code of the contract."""

from __future__ import annotations

import json
import re
from operator import itemgetter
from typing import Any

import pytest
from tests.unit.answers import NOW, body_of, classify, openai, refusals

from lastword import _codes
from lastword._classify import MAX_RAW, classify_frame, classify_response
from lastword._codes import CODES, Category, Code


@pytest.mark.parametrize("vector", refusals(), ids=itemgetter("id"))
def test_every_known_answer_becomes_its_code(vector: dict[str, Any]) -> None:
    """Category, outcome and retryability are the registry's, and the server's status, words and bytes stay (CLS-3, CLS-9)."""
    exchange, expect = vector["server"][0], vector["expect"]
    body = body_of(vector)
    info = classify_response(exchange["status"], exchange.get("headers", {}), body, now=NOW)
    assert info is not None
    assert (info.code, info.outcome, info.status) == (expect["code"], expect["outcome"], exchange["status"])
    known = CODES.get(info.code)
    assert known is None or info.retryable == (known.category is Category.RETRYABLE)
    assert info.raw == body.decode("utf-8-sig", "replace")[:MAX_RAW]
    assert [part for part in expect.get("message_contains", ()) if part not in info.message] == []
    assert expect.get("details", {}).items() <= info.details.items()


@pytest.mark.parametrize(
    ("event", "data", "code"),
    [
        ("error", "", Code.INTERNAL_SERVER_ERROR),
        (
            "response.failed",
            {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "m"}}},
            Code.RATE_LIMIT_EXCEEDED,
        ),
    ],
)
def test_error_events_that_no_vector_shows(event: str, data: object, code: Code) -> None:
    """The rest are vectors of the area ``error``, played on the decoder; these have another grammar, or none."""
    info = classify_frame(event, data)
    assert info is not None
    assert (info.code, info.message != "") == (code, True)


@pytest.mark.parametrize("word", [True, False])
def test_a_server_may_say_that_a_retry_is_not_worth_it(word: bool) -> None:
    """Its word can take a retryable error back (ERR-2)."""
    info = classify_frame("", {"error": {"message": "m", "code": 500, "retryable": word}})
    assert info is not None
    assert (info.code, info.retryable) == (Code.INTERNAL_SERVER_ERROR, word)


def test_a_private_code_alone_is_never_worth_a_retry() -> None:
    """Nobody knows what it means, and nothing beside it says more (ERR-6)."""
    error = {"message": "m", "type": "strange_error", "param": None, "code": "brand_new"}
    info = classify_frame("", {"error": error})
    assert info is not None
    assert (info.code, info.retryable, info.details) == (
        Code.INTERNAL_SERVER_ERROR, False, {"upstream_code": "brand_new"}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("", {"choices": []}),
        ("", {"error": None}),
        ("", {"error": None, "choices": []}),
        ("ping", {"type": "ping"}),
        ("message", "text"),
        ("", None),
        ("", []),
        ("", {"detail": None}),
        ("response.created", {"type": "response.created", "response": {"error": None}}),
    ],
)
def test_what_is_no_error_is_none(event: str, data: object) -> None:
    """Chunks, pings, null errors (CLS-8) and events of other kinds."""
    assert classify_frame(event, data) is None


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"choices": []}', b'{"error": null}', b"<html>", b"[]", b'"x"', b"\xff"]
)
def test_a_2xx_without_an_errors_shape_is_none(body: bytes) -> None:
    """Whether it is a good answer is not for the classifier to say."""
    assert [classify_response(status, {}, body) for status in (200, 204)] == [None, None]


def test_a_byte_order_mark_before_the_json_is_dropped() -> None:
    """Some gateways send one; the error behind it must not be taken for text or for no error."""
    info = classify_response(200, {}, b"\xef\xbb\xbf" + json.dumps(openai("x", "insufficient_quota")).encode())
    assert info is not None
    assert info.code == Code.QUOTA_EXCEEDED


def test_details_of_the_body_stand_beside_those_of_the_words() -> None:
    """What the server gave as a member wins over what was read out of its sentence."""
    error = {"message": "prompt is too long: 5000 tokens > 4096 maximum", "details": {"prompt_tokens": 5001, "a": 1}}
    assert classify(400, {"error": error}).details == {"prompt_tokens": 5001, "max_model_len": 4096, "a": 1}


def test_every_pattern_names_each_of_its_groups() -> None:
    """A pattern whose details do not fit its groups would raise when it is met."""
    wrong = [
        text
        for text, _ in _codes.MESSAGE_PATTERNS
        if re.compile(text).groups != len(_codes.MESSAGE_DETAILS.get(text, ()))
    ]
    assert wrong == []


def test_a_type_that_names_the_cause_is_not_overruled_by_words() -> None:
    """Words only refine the code that a type gave; they never change it."""
    body = {"error": {"message": "The model `x` does not exist", "type": "rate_limit_error"}}
    assert classify(429, body).code == Code.RATE_LIMIT_EXCEEDED


@pytest.mark.parametrize(("alias", "code"), sorted(_codes.CODE_ALIASES.items()))
def test_aliases_of_codes(alias: str, code: Code) -> None:
    """A code in another server's spelling means the contract's, whatever the status."""
    assert classify(400, openai("x", alias)).code == code


@pytest.mark.parametrize(("reason", "code"), sorted(_codes.DROPPED_REASONS.items()))
def test_llm_ds_reason_is_asked_first(reason: str, code: Code) -> None:
    """The router's header says more than its text body."""
    info = classify(429, "inference error: ResourceExhausted - m", x_llm_d_request_dropped_reason=reason)
    known = CODES[code]
    assert (info.code, info.category, info.origin, info.status) == (code, known.category, "gateway", 429)
