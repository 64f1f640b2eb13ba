"""The envelopes of errors, read into one flat mapping."""

from __future__ import annotations

from typing import Any

import pytest

from lastword._envelopes import any_fields, describe_text, error_fields, shown

CHOICE = [{"index": 0, "delta": {}}]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"error": {"message": "m", "type": "t", "param": "p", "code": 400}}, ("m", "t", "p", 400)),
        ({"error": {"message": "m", "code": None}}, ("m", None, None, None)),
        ({"error": "m"}, ("m", None, None, None)),
        ({"error": ["m"]}, ('["m"]', None, None, None)),
        ({"error": "m", "error_type": "overloaded"}, ("m", "overloaded", None, None)),
        ({"error": True, "message": "m"}, ("m", None, None, None)),
        ({"error": "Bad Request", "message": "m"}, ("Bad Request: m", None, None, None)),
        ({"error": "Bad Request", "message": ["a", "b"]}, ('Bad Request: ["a", "b"]', None, None, None)),
        ({"error": "m", "message": "m"}, ("m", None, None, None)),
        ({"object": "error", "message": "m", "type": "t", "param": None, "code": 400}, ("m", "t", None, 400)),
        ({"object": "error", "message": "m", "choices": CHOICE}, ("m", None, None, None)),
        ({"type": "error", "error": {"type": "t", "message": "m"}}, ("m", "t", None, None)),
        ({"type": "error", "code": "c", "message": "m", "param": None}, ("m", "error", None, "c")),
        ({"type": "error", "message": "m", "choices": CHOICE}, ("m", "error", None, None)),
        ({"message": "m", "type": "t", "code": 529}, ("m", "t", None, 529)),
        ({"message": "m", "code": 500}, ("m", None, None, 500)),
        ({"detail": "m"}, ("m", None, None, None)),
        ({"detail": {"error": "m"}}, ("m", None, None, None)),
        ({"detail": {"error": {"message": "m", "code": "400"}}}, ("m", None, None, "400")),
        ({"detail": {"message": "m", "type": "t"}}, ("m", "t", None, None)),
        ({"detail": 5}, ("5", None, None, None)),
        ({"detail": []}, ("[]", None, None, None)),
        ({"detail": ["m"]}, ('["m"]', None, None, None)),
        (
            {"detail": [{"loc": ["body", "n", 0], "msg": "bad"}, {"msg": "worse"}]},
            ("body.n.0: bad; worse", None, "body.n.0", None),
        ),
        ({"detail": [{"loc": "body", "msg": "m"}]}, ("body: m", None, "body", None)),
        ({"detail": [{"loc": 5, "msg": "m"}]}, ("5: m", None, "5", None)),
        ({"detail": [{"loc": [], "msg": "m"}]}, ("m", None, None, None)),
        ({"error": {"error": {"message": "m", "code": "c"}}}, ("m", None, None, "c")),
        ({"error": {"type": "outer", "message": {"message": "m", "param": "p"}}}, ("m", "outer", "p", None)),
        ({"error": {"message": None, "error": "m"}}, ("m", None, None, None)),
        ({"error": {"message": ["m"]}}, ('["m"]', None, None, None)),
        ([{"error": {"message": "m", "code": 429}}], ("m", None, None, 429)),
        ({"type": "response.failed", "response": {"error": {"code": "c", "message": "m"}}}, ("m", None, None, "c")),
        ({"type": "response.failed", "response": {"error": None}}, ("", None, None, None)),
        ({"error": {"message": "m"}, "choices": CHOICE}, ("m", None, None, None)),
    ],
)
def test_every_envelope_is_read(value: object, expected: tuple[object, ...]) -> None:
    """Message, type, param and code are found wherever the server put them (CLS-3)."""
    fields = error_fields(value) or {}
    assert (fields["message"], fields.get("type"), fields.get("param"), fields.get("code")) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        "error",
        [],
        [{"choices": []}],
        [{"error": "a"}, {"error": "b"}],
        {},
        {"error": None},
        {"error": ""},
        {"error": {}},
        {"error": False},
        {"message": "m", "code": 200, "data": []},
        {"error": None, "choices": CHOICE},
        {"error": "", "choices": CHOICE},
        {"error": {}, "choices": CHOICE},
        {"detail": None},
        {"detail": "d", "choices": CHOICE},
        {"message": "m"},
        {"message": {"role": "assistant"}, "type": "message"},
        {"id": "msg_1", "type": "message", "message": "m"},
        {"type": "response.failed"},
        {"type": "response.failed", "response": "r"},
        {"type": "response.created", "response": {"error": None}},
        {"object": "list", "data": []},
        {"choices": CHOICE, "usage": None},
    ],
)
def test_what_has_no_shape_of_an_error_is_none(value: object) -> None:
    """Chunks, answers, lists and null errors (CLS-8) pass."""
    assert error_fields(value) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"error": "m"}, "m"),
        ({"message": "m"}, "m"),
        ({"reason": "disk full"}, '{"reason": "disk full"}'),
        ({"errors": ["x" * 600]}, '{"errors": ["' + "x" * 487),
        (" m ", "m"),
    ],
)
def test_a_known_error_is_read_from_anything_that_speaks(value: object, expected: str) -> None:
    """Once the status says that it is an error, the words are looked for everywhere (CLS-9)."""
    assert (any_fields(value) or {})["message"] == expected


@pytest.mark.parametrize("value", [None, {}, [], 0, "", " \n", ["a", "b"]])
def test_a_known_error_that_says_nothing_is_none(value: object) -> None:
    """The caller describes the body instead."""
    assert any_fields(value) is None


def test_the_contracts_own_members_are_kept() -> None:
    """Category, retryable, hint, id, origin, version and details come through."""
    error = {
        "message": "m",
        "code": "c",
        "category": "retryable",
        "retryable": True,
        "retry_after_ms": 5,
        "request_id": "r",
        "origin": "shim",
        "details": {"a": 1},
        "contract": "1",
    }
    assert error_fields({"error": {**error, "later": "member"}}) == error


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ({"request_id": "req_1"}, {}, "req_1"),
        ({"request_id": "req_1"}, {"request_id": "req_2"}, "req_2"),
        ({"request_id": 5}, {}, None),
        ({}, {}, None),
    ],
)
def test_anthropics_request_id_stands_outside(
    outer: dict[str, Any], inner: dict[str, Any], expected: str | None
) -> None:
    """The envelope's id is used where the error has none of its own."""
    assert (error_fields({"type": "error", "error": {"message": "m", **inner}, **outer}) or {}).get(
        "request_id"
    ) == expected


def test_llama_cpps_numbers_become_details() -> None:
    """Its names for the prompt's length and the context become the contract's."""
    fields = error_fields({"error": {"message": "m", "n_prompt_tokens": 9, "n_ctx": 8, "details": {"a": 1}}})
    assert (fields or {})["details"] == {"a": 1, "prompt_tokens": 9, "max_model_len": 8}
    fields = error_fields({"error": {"message": "m", "n_prompt_tokens": True, "n_ctx": 8.5}})
    assert (fields or {})["details"] == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [(422, 422), (599, 599), (200, None), (0, None), (-1, None), (600, None), ("422", None), (True, None)],
)
def test_tgis_status_in_the_body(value: object, expected: int | None) -> None:
    """``http_status_code`` counts if it is an error's."""
    assert (error_fields({"error": {"message": "m", "http_status_code": value}}) or {}).get("status") == expected


def test_envelopes_nested_without_end_do_not_raise() -> None:
    """What lies deeper than a gateway of gateways is shown, not followed."""
    nested: dict[str, Any] = {"message": "m"}
    for _ in range(50_000):
        nested = {"message": nested}
    assert (error_fields({"error": nested}) or {})["message"] == "a dict that cannot be shown"


@pytest.mark.parametrize(("value", "expected"), [("a", "a"), ({"é": [1, None]}, '{"é": [1, null]}'), (None, "null")])
def test_shown(value: object, expected: str) -> None:
    """A text is itself, anything else its JSON."""
    assert shown(value) == expected


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (503, "", "HTTP 503 Service Unavailable with an empty body"),
        (529, " \n", "HTTP 529 with an empty body"),
        (
            504,
            "<html><head><TITLE>504 Gateway\n Time-out</TITLE>",
            "HTTP 504 Gateway Timeout with an HTML page: 504 Gateway Time-out",
        ),
        (502, "<html><body>no title", "HTTP 502 Bad Gateway with a body of markup"),
        (503, "\nupstream connect error\nreset reason", "upstream connect error"),
        (500, "x" * 600, "x" * 500),
    ],
)
def test_bodies_that_are_no_json_are_described(status: int, text: str, expected: str) -> None:
    """A page gives its title, a text its first line, an empty body its status."""
    assert describe_text(status, text) == expected
