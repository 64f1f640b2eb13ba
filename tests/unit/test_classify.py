"""Classification: every error of every known server becomes one code of the contract."""

from __future__ import annotations

import json
import re
from operator import itemgetter
from typing import Any

import pytest
from tests.unit.answers import cases, classify, openai

from lastword import _codes
from lastword._classify import classify_frame, classify_response
from lastword._codes import CODES, Category, Code


@pytest.mark.parametrize("case", cases("answers"), ids=itemgetter("name"))
def test_every_known_answer_becomes_its_code(case: dict[str, Any]) -> None:
    """Code, category, outcome and retryability are the registry's, and the server's status and words stay (CLS-3)."""
    status, body = case["status"], case["body"]
    info, known = classify(status, body), CODES[case["code"]]
    assert (info.code, info.category, info.outcome) == (case["code"], known.category, known.outcome)
    assert info.retryable == (known.category is Category.RETRYABLE)
    assert info.status == status or status == 200
    assert info.raw == (body if isinstance(body, str) else json.dumps(body))


@pytest.mark.parametrize(
    "case", [case for case in cases("answers") if '"m"' in json.dumps(case)], ids=itemgetter("name")
)
def test_the_text_that_a_server_gave_is_in_the_message(case: dict[str, Any]) -> None:
    """Wherever it stood in the body (CLS-9)."""
    assert "m" in re.findall(r"\w+", classify(case["status"], case["body"]).message)


@pytest.mark.parametrize("case", cases("frames"), ids=itemgetter("name"))
def test_every_known_frame_becomes_its_code(case: dict[str, Any]) -> None:
    """The same tables hold within a stream, where the HTTP status says 200 (CLS-7)."""
    info = classify_frame(case["event"], case["data"])
    assert info is not None
    assert (info.code, info.retryable, info.message != "") == (case["code"], case["retryable"], True)


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


@pytest.mark.parametrize("case", cases("context"), ids=lambda case: case["message"][:40])
def test_an_overflow_is_one_code_in_whatever_words_with_its_numbers(case: dict[str, Any]) -> None:
    """The numbers that a server writes into its sentence become details (CLS-5)."""
    info = classify(400, {"error": {"message": case["message"], "type": "BadRequestError", "code": 400}})
    assert (info.code, info.details) == (Code.CONTEXT_LENGTH_EXCEEDED, case["details"])


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
