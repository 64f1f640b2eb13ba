"""What no server should send, and one day does: nothing makes the classifier raise, nor guess in our favour."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.answers import NOW, classify

from lastword import _codes
from lastword._classify import ErrorInfo, classify_frame, classify_response, error_body
from lastword._codes import CODES, Category, Code

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
WORDS = st.sampled_from(
    [*Code, *_codes.CODE_ALIASES, *_codes.TYPE_ALIASES, *_codes.GENERIC_TYPES, *Category, "brand_new"]
)
MEMBERS = (
    "error message type param code status detail object choices response error_type loc msg category retryable id contract "
    "retry_after_ms request_id origin details n_ctx n_prompt_tokens http_status_code"
)
NAMES = st.sampled_from(MEMBERS.split())
JSON = st.recursive(
    SCALARS | WORDS.map(str) | st.sampled_from(["error", "response.failed", 400, 429, 503, "503"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=5), inner, max_size=6),
    max_leaves=12,
)
ERRORS = st.dictionaries(NAMES, JSON, min_size=1, max_size=8)
HEADERS = st.dictionaries(
    st.sampled_from(
        ["retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "x-llm-d-request-dropped-reason"]
    ),
    st.text(max_size=30) | st.floats().map(str) | st.sampled_from(["evicted", "true", "false"]),
)


def consistent(info: ErrorInfo | None) -> bool:
    """Whether everything about it is of the set that it must be of, and can be sent on as JSON."""
    if info is None:
        return True
    known = CODES.get(info.code)
    body = json.loads(json.dumps(error_body(info)))["error"]
    return (
        info.category in set(Category)
        and info.outcome == (known.outcome if known else "failed")
        and (known is None or info.category == known.category)
        and (not info.retryable or info.category == Category.RETRYABLE)
        and (info.retry_after is None or info.retry_after >= 0)
        and (info.status is None or 400 <= info.status < 600 or not 200 <= info.status < 300)
        and info.message != ""
        and body["code"] == info.code
    )


@given(st.integers(100, 599), HEADERS, JSON | ERRORS)
def test_no_json_value_and_no_header_makes_it_raise(status: int, headers: dict[str, str], value: object) -> None:
    """Every answer is None or a consistent error; anything but a 2xx is an error."""
    info = classify_response(status, headers, json.dumps(value).encode(), now=NOW)
    assert consistent(info)
    assert info is not None or 200 <= status < 300


@given(st.integers(100, 599), HEADERS, st.binary(max_size=100))
def test_no_bytes_make_it_raise(status: int, headers: dict[str, str], body: bytes) -> None:
    """Nor does anything that is no JSON."""
    info = classify_response(status, headers, body, now=NOW)
    assert consistent(info)
    assert info is not None or 200 <= status < 300


@given(st.sampled_from(["", "error", "message", "x"]), JSON | ERRORS)
def test_no_frame_makes_it_raise(event: str, value: object) -> None:
    """Every frame is None or a consistent error; one that is named error is an error."""
    info = classify_frame(event, value)
    assert consistent(info)
    assert info is not None or event != "error"


@pytest.mark.parametrize("template", ['{"error": %s}', '{"error": {"message": %s}}', '{"error": {"code": %s}}', "%s"])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"message": ', "}"), ('{"error": ', "}")])
def test_no_depth_makes_it_raise(template: str, opening: str, closing: str) -> None:
    """Also not the depths that the parser just about accepts and a writer does not."""
    for depth in [*range(1, 20), *range(850, 1050), 100_000]:
        inner = opening * depth + "1" + closing * depth
        assert consistent(classify_response(500, {}, (template % inner).encode(), now=NOW))


@given(
    st.text(min_size=1, max_size=30).filter(lambda code: code not in CODES and code not in _codes.CODE_ALIASES),
    st.dictionaries(st.sampled_from(["retryable", "contract", "details", "origin"]), JSON),
)
def test_an_unknown_code_alone_is_never_retryable(code: str, members: dict[str, object]) -> None:
    """Without a category, a status or a type that says so, a code that nobody here knows is not retried (ERR-6)."""
    if re.fullmatch("[45][0-9][0-9]", code):
        return
    info = classify_frame("", {"error": {"message": "m", "code": code, **members}})
    assert info is not None
    assert not info.retryable


@given(
    st.sampled_from([status for status in range(400, 600) if status not in _codes.STATUS_CODES]),
    st.sampled_from(["brand_new", "1302", "x.y"]),
)
def test_an_unknown_code_with_an_unlisted_status_is_never_retryable(status: int, code: str) -> None:
    """Of a later contract, it is not guessed from the hundreds of its status either."""
    info = classify(status, {"error": {"message": "m", "code": code, "contract": "9"}})
    assert (info.code, info.retryable) == (code, False)
