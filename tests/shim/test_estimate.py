"""Sizes before anybody has counted tokens, and depths before anybody has parsed."""

from __future__ import annotations

import base64
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword_shim.admission.estimate import MEDIA_TOKENS, Rate, Weight, weigh
from lastword_shim.protocol.depth import MAX_DEPTH, too_deep

PICTURE = base64.b64encode(bytes(range(256)) * 4000).decode()  # 1.4 MB
JSON = "application/json"


def chat(*parts: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": list(parts)}]}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
        {"type": "image_url", "image_url": f"data:image/svg+xml;charset=utf-8;base64,{PICTURE}"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
        {"type": "input_audio", "input_audio": {"data": PICTURE, "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PICTURE}"}},
        {"type": "image_embeds", "image_embeds": PICTURE},
    ],
)
def test_a_picture_is_no_text_however_it_is_sent(part: object) -> None:
    """1.4 MB of base64 weigh what a picture does; the text beside it weighs what it weighed."""
    text = {"type": "text", "text": "what is this? " * 20}
    plain = json.dumps(chat(text)).encode()
    weight = weigh(json.dumps(chat(text, part)).encode(), JSON)
    assert weight.media == 1
    assert len(plain) < weight.text < len(plain) + 300
    assert MEDIA_TOKENS < Rate().tokens(weight) < MEDIA_TOKENS + 300


def test_writers_that_put_a_backslash_before_each_slash_are_understood() -> None:
    """PHP's do, in `data:image\\/png` and in base64 itself."""
    body = json.dumps(chat({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}))
    assert weigh(body.replace("/", "\\/").encode(), JSON).media == 1


def test_text_stays_text() -> None:
    """Long words, small data URLs and a member called data with a sentence in it are no pictures."""
    for text in ("a" * 9000, "see data:text/plain;base64,aGVsbG8= " * 200, json.dumps({"data": "some words " * 900})):
        body = json.dumps({"prompt": text}).encode()
        assert weigh(body, JSON) == Weight(text=len(body))
    body = json.dumps({"data": "some words " * 900}).encode()
    assert weigh(body, JSON) == Weight(text=len(body))


def test_an_upload_is_one_recording() -> None:
    """Its bytes are no text."""
    for content_type in ("multipart/form-data; boundary=x", "Audio/wav", "application/octet-stream"):
        assert weigh(b"x" * 5_000_000, content_type) == Weight(media=1)


def test_a_hostile_body_costs_no_more_than_its_length() -> None:
    """Patterns that begin over and over again, and never end."""
    for part in (b"data:", b"data:a;", b"data:a;base64,b ", b'"data":"', b'"data" ', b"data:a;base64,", b'\\"', b'"'):
        body = part * (2_000_000 // len(part))
        began = time.process_time()
        weigh(body, JSON)
        too_deep(b"[" * 200 + b'"' + body)
        assert time.process_time() - began < 1.0, part


def test_the_rate_is_learned() -> None:
    """From 4 bytes a token to what this model's tokenizer makes of these clients' prompts, and it follows a change."""
    rate = Rate()
    assert rate.tokens(Weight(text=4000)) == 1000
    for _ in range(100):
        rate.learn(Weight(text=2000), 1000)
    assert rate.tokens(Weight(text=4000)) == pytest.approx(2000, rel=0.02)
    for _ in range(200):
        rate.learn(Weight(text=2000), 250)
    assert rate.tokens(Weight(text=4000)) == pytest.approx(500, rel=0.05)


def test_what_says_nothing_of_text_teaches_nothing() -> None:
    """Pictures, prompts that are mostly template; and one huge prompt does not speak for all."""
    rate = Rate()
    rate.learn(Weight(text=2000, media=1), 90_000)
    rate.learn(Weight(text=40), 200)
    rate.learn(Weight(text=2000), 0)
    assert rate.tokens(Weight(text=4000)) == 1000
    for _ in range(50):
        rate.learn(Weight(text=2000), 500)
    rate.learn(Weight(text=10_000_000), 10_000_000)
    assert rate.tokens(Weight(text=4000)) < 2000


@pytest.mark.parametrize("tokens", [1, 2**53 - 1])
def test_a_number_that_was_told_wrong_is_soon_forgotten(tokens: int) -> None:
    """A usage can say anything, and a body can be padded with what is no prompt."""
    rate = Rate()
    rate.learn(Weight(text=16_000), tokens)
    for _ in range(200):
        rate.learn(Weight(text=2000), 500)
    assert rate.tokens(Weight(text=4000)) == pytest.approx(1000, rel=0.05)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 3)), max_size=20))
def test_no_history_makes_an_estimate_absurd(history: list[tuple[int, int, int]]) -> None:
    """Between one token in 32 bytes and one and a half a byte; at least one."""
    rate = Rate()
    for text, tokens, media in history:
        rate.learn(Weight(text, media), tokens)
    assert 1000 / 32 - 1 <= rate.tokens(Weight(text=1000)) <= 1500
    assert rate.tokens(Weight()) == 1


def nested(depth: int) -> bytes:
    return b'{"a":[' * (depth // 2) + b"1" + b"]}" * (depth // 2)


def test_a_body_nested_too_deep_is_refused_with_the_number() -> None:
    """Before anything parses it."""
    assert too_deep(nested(MAX_DEPTH)) is None
    behind_a_backslash = b'["\\\\",' + nested(MAX_DEPTH) + b"]"
    in_utf_16 = nested(MAX_DEPTH + 2).decode().encode("utf-16")
    for body in (nested(MAX_DEPTH + 2), b"[" * 100_000, behind_a_backslash, in_utf_16):
        error = too_deep(body)
        assert error is not None
        assert (error.code, error.details) == ("invalid_request_error", {"max_depth": MAX_DEPTH})
        assert str(MAX_DEPTH) in error.message


def test_breadth_and_brackets_in_strings_are_no_depth() -> None:
    """A long conversation, and one about brackets."""
    values: tuple[object, ...] = ([[]] * 5000, "[" * 5000, {"a": '\\"[' * 5000}, "\\" + "[" * 5000)
    for value in values:
        assert too_deep(json.dumps(value).encode()) is None


VALUES = st.recursive(
    st.text(alphabet='[]{}"\\\u4f60a', max_size=6),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=30,
)


@given(VALUES, st.integers(0, 300), st.sampled_from(["utf-8", "utf-16", "utf-32-le"]), st.booleans())
def test_the_depth_found_is_the_depth_there_is(value: object, depth: int, encoding: str, ascii_only: bool) -> None:
    """Whatever stands in the strings, in each encoding that JSON may have."""
    for _ in range(depth):
        value = [value]
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert (too_deep(text.encode(encoding)) is not None) == (depth_of(value) > MAX_DEPTH)


def depth_of(value: object) -> int:
    deepest, level = 0, [value]
    while level:
        containers = [each for each in level if isinstance(each, list | dict)]
        deepest += bool(containers)
        level = [inner for each in containers for inner in (each.values() if isinstance(each, dict) else each)]
    return deepest
