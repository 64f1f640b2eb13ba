"""A request is made ready and checked before anything is sent."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import NOT_GIVEN, omit
from openai.types.chat import ChatCompletionMessage

from lastword._completeness import expected_choices
from lastword._deadline import Timeouts
from lastword._errors import InvalidRequest
from lastword._request import Prepared, prepare

DEFAULT = Timeouts(connect=1, first_token=2, idle=3, total=4)


def ready(method: str = "POST", headers: Mapping[str, str] | None = None, **params: Any) -> Prepared:
    return prepare(method, "/chat/completions", params, headers=headers or {}, timeouts=DEFAULT)


def body(**params: Any) -> Any:
    return json.loads(ready(**params).content)


def refusal(headers: Mapping[str, str] | None = None, **params: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        ready(headers=headers, **params)
    return caught.value


def test_arguments_become_the_body() -> None:
    """As compact JSON, unknown ones included, None as null."""
    request = ready(model="m", top_k=5, stop=None, text="é")
    assert request.content == b'{"model":"m","top_k":5,"stop":null,"text":"\\u00e9"}'
    assert (request.method, request.path, request.timeouts) == ("POST", "/chat/completions", DEFAULT)


@pytest.mark.parametrize("mark", [NOT_GIVEN, omit])
def test_openais_marks_for_nothing_are_left_out(mark: object) -> None:
    """Code written for the openai package passes them about, also within the extras."""
    assert body(model="m", n=mark, extra_body={"a": mark, "b": 1}, timeout=mark, extra_query=mark) == {
        "model": "m",
        "b": 1,
    }


def test_extra_body_is_merged_over_the_body() -> None:
    """What it says counts; a stream it must not make of an answer, since create returns something else for each."""
    request = ready(model="m", n=1, stream=True, extra_body={"n": 2, "stream": True})
    assert (json.loads(request.content), request.stream, request.choices) == (
        {"model": "m", "n": 2, "stream": True},
        True,
        2,
    )


@pytest.mark.parametrize(
    ("query", "path"),
    [(None, ""), ({}, ""), ({"a": 1, "b": ["x y", "ü"]}, "?a=1&b=x+y&b=%C3%BC"), ({"a": NOT_GIVEN}, "")],
)
def test_extra_query_goes_into_the_url(query: object, path: str) -> None:
    """Encoded, lists as repeated names."""
    assert ready(extra_query=query).path == "/chat/completions" + path


@pytest.mark.parametrize(
    ("stream", "accept"), [(True, "text/event-stream"), (False, "application/json"), (None, "application/json")]
)
def test_accept_says_what_is_expected(stream: bool | None, accept: str) -> None:
    """A stream is asked for as one."""
    request = ready(stream=stream)
    assert (request.stream, request.headers["accept"], request.headers["content-type"]) == (
        bool(stream),
        accept,
        "application/json",
    )


def test_a_get_has_no_body() -> None:
    """Nor the type of one."""
    request = ready("GET", extra_query={"a": 1})
    assert (request.content, "content-type" in request.headers) == (b"", False)


def test_headers_are_merged_without_regard_to_case() -> None:
    """The call's go over the client's, and None removes one."""
    headers = {"Authorization": "Bearer k", "X-A": "1", "x-b": "2"}
    request = ready(headers=headers, extra_headers={"x-a": 5, "X-B": None, "x-none": None, "x-c": NOT_GIVEN})
    assert {name: value for name, value in request.headers.items() if name.startswith(("x-a", "x-b", "x-c", "a"))} == {
        "authorization": "Bearer k",
        "x-a": "5",
        "accept": "application/json",
        "accept-encoding": "identity",
    }


@pytest.mark.parametrize(
    "name", ["X-Request-Attempt", "request-timeout-ms", "Content-Length", "transfer-encoding", "Host"]
)
def test_headers_that_are_ours_cannot_be_set(name: str) -> None:
    """They are made for each attempt, or by the transport."""
    assert name.lower() not in ready(extra_headers={name: "1"}).headers


def test_a_request_id_is_made_if_there_is_none() -> None:
    """A new one for each call, and after None as well (HDR-1)."""
    ids = [ready().request_id, ready().request_id, ready(extra_headers={"x-request-id": None}).request_id]
    assert [str(uuid.UUID(each)) for each in ids] == ids
    assert len(set(ids)) == 3


@pytest.mark.parametrize("request_id", ["a", "A-z_0.9:", "x" * 128])
def test_the_callers_request_id_is_kept(request_id: str) -> None:
    """On the request and in its header."""
    request = ready(extra_headers={"X-Request-Id": request_id})
    assert (request.request_id, request.headers["x-request-id"]) == (request_id, request_id)


@pytest.mark.parametrize("request_id", ["", " a", "a b", "x" * 129, "a/b", "a\t"])
def test_a_request_id_that_is_none_is_refused(request_id: str) -> None:
    """Letters, digits and -_.: only."""
    assert refusal(extra_headers={"x-request-id": request_id}).param == "x-request-id"


@pytest.mark.parametrize(
    ("extra", "param"),
    [
        ({"a b": "1"}, "extra_headers"),
        ({"": "1"}, "extra_headers"),
        ({"a:": "1"}, "extra_headers"),
        ({"a": "1\r\nb: 2"}, "a"),
        ({"a": "\0"}, "a"),
        ({"a": "é"}, "a"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused(extra: dict[str, str], param: str) -> None:
    """Before anything is sent, and by name; a line break would be another header."""
    error = refusal(extra_headers=extra)
    assert (error.param, error.message.endswith("nothing was sent"), error.origin) == (param, True, "client")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, DEFAULT),
        (10, Timeouts(connect=1, first_token=2, idle=3, total=10)),
        (0.5, Timeouts(connect=1, first_token=2, idle=3, total=0.5)),
        (Timeouts(total=None), Timeouts(total=None)),
    ],
)
def test_timeout(value: object, expected: Timeouts) -> None:
    """The total in seconds, or all of them; None is the client's."""
    assert ready(timeout=value).timeouts == expected


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 10**400, True, "5", (1, 2)])
def test_a_timeout_that_makes_no_sense_is_refused(value: object) -> None:
    """By name."""
    assert refusal(timeout=value).param == "timeout"


@pytest.mark.parametrize("name", ["extra_body", "extra_headers", "extra_query"])
@pytest.mark.parametrize("value", [[("a", 1)], "a", 5])
def test_extras_must_be_mappings(name: str, value: Any) -> None:
    """A list of pairs or a text is refused by the name of the argument."""
    assert refusal(**{name: value}).param == name


RECURSIVE: list[object] = []
RECURSIVE.append(RECURSIVE)


@pytest.mark.parametrize("value", [object(), b"x", float("nan"), float("inf"), [{"a": {1j}}], RECURSIVE, {(1, 2): 3}])
def test_what_is_no_json_is_refused(value: object) -> None:
    """By the name of the argument that holds it."""
    error = refusal(model="m", messages=value, n=1)
    assert (error.param, error.code) == ("messages", "invalid_request_error")


def test_depth_is_refused() -> None:
    """A value nested deeper than can be written is named as any other."""
    nested: object = 1
    for _ in range(100_000):
        nested = [nested]
    assert refusal(model="m", messages=nested).param == "messages"


def test_a_generator_that_has_been_read_cannot_be_named() -> None:
    """Its items are gone when the culprit is looked for, so it is the body."""
    assert refusal(messages=iter([object()])).param == "body"


def test_half_a_surrogate_pair_cannot_stand_in_a_url() -> None:
    """In JSON it can."""
    assert refusal(extra_query={"a": "\ud800"}).param == "extra_query"
    assert body(a="\ud800") == {"a": "\ud800"}


def test_an_answers_message_can_be_put_back() -> None:
    """A model, a mapping and any iterable are written as JSON."""
    message = ChatCompletionMessage.model_construct(role="assistant", content=None, reasoning="r")
    assert body(messages=iter([message, MappingProxyType({"role": "user"})]), stop=("a", "b")) == {
        "messages": [{"role": "assistant", "content": None, "reasoning": "r"}, {"role": "user"}],
        "stop": ["a", "b"],
    }


@pytest.mark.parametrize(
    ("request_body", "expected"),
    [
        ({}, 1),
        ({"n": 3}, 3),
        ({"n": None, "prompt": "a"}, 1),
        ({"n": 2.0}, 2),
        ({"n": "2"}, 2),
        ({"n": 0}, 1),
        ({"n": -1}, 1),
        ({"n": 1.5}, 1),
        ({"n": "x"}, 1),
        ({"n": [2]}, 1),
        ({"n": float("inf")}, 1),
        ({"n": 10**400}, 1),
        ({"n": 2, "prompt": ["a", "b", "c"]}, 6),
        ({"prompt": ("a", "b")}, 2),
        ({"prompt": [1, 2, 3]}, 1),
        ({"prompt": [[1, 2], [3]]}, 2),
        ({"prompt": []}, 1),
    ],
)
def test_expected_choices(request_body: dict[str, object], expected: int) -> None:
    """``n`` × prompts, as a lenient server reads them; token ids are one prompt (OUT-3)."""
    assert expected_choices(request_body) == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [(("a", "b"), 2), (iter(["a", "b", "c"]), 3), ({"a": 1, "b": 2}.keys(), 2), (range(5), 1), ("abc", 1)],
)
def test_prompts_of_any_iterable_are_counted_as_they_are_sent(prompt: object, expected: int) -> None:
    """A generator is read once, for both."""
    request = ready(prompt=prompt)
    sent = json.loads(request.content)["prompt"]
    assert (request.choices, expected_choices({"prompt": sent})) == (expected, expected)


ARGUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["model", "n", "prompt", "stream", "extra_body", "extra_headers", "extra_query", "timeout", "x"]
)


@given(st.dictionaries(NAMES, ARGUMENTS, max_size=5), st.sampled_from(["GET", "POST"]))
def test_whatever_is_passed_is_sent_or_refused(params: dict[str, object], method: str) -> None:
    """Nothing but ``InvalidRequest`` comes out, and what is sent is JSON with headers that can be."""
    try:
        request = prepare(method, "/x", params, headers={}, timeouts=DEFAULT)
    except InvalidRequest as error:
        assert error.param is not None  # noqa: PT017
        return
    assert method == "GET" or isinstance(json.loads(request.content), dict)
    assert all(name.isascii() and value.isascii() for name, value in request.headers.items())
    assert request.choices >= 1
