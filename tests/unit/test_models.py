"""The fast builder gives what the openai package's own ``construct`` gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import reduce
from typing import Any

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from lastword import _models

Path = tuple[str | int, ...]

USAGE = {
    "prompt_tokens": 1,
    "completion_tokens": 2,
    "total_tokens": 3,
    "prompt_tokens_details": {"cached_tokens": 1},
    "completion_tokens_details": None,
}
LOGPROB = {"token": "a", "logprob": -1, "bytes": [97]}
LOGPROBS = {"content": [{**LOGPROB, "top_logprobs": [LOGPROB, {**LOGPROB, "bytes": None}]}], "refusal": None}
CALL = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CITATION = {"type": "url_citation", "url_citation": {"end_index": 1, "start_index": 0, "title": "t", "url": "u"}}
DELTA = {
    "role": "assistant",
    "content": "hi",
    "refusal": None,
    "reasoning_content": "r",
    "tool_calls": [{"index": 0, **CALL}, {"index": 1, "function": {"arguments": "{"}}],
    "function_call": {"name": "f", "arguments": ""},
    "audio": {"id": "a", "expires_at": 3},
}
HEAD = {"id": "c", "created": 1, "model": "m", "system_fingerprint": None, "service_tier": "default"}
CHUNK = {
    **HEAD,
    "object": "chat.completion.chunk",
    "choices": [{"index": 0, "delta": DELTA, "logprobs": LOGPROBS, "finish_reason": "abort", "stop_reason": None}],
    "usage": USAGE,
    "later": {"member": [1]},
    "moderation": {
        "input": {"type": "moderation_results", "model": "m", "results": []},
        "output": {"type": "error", "code": "c", "message": "m"},
    },
}
MESSAGE = {
    "role": "assistant",
    "content": "hi",
    "reasoning": None,
    "annotations": [CITATION],
    "tool_calls": [CALL, {"id": "u", "type": "custom", "custom": {"name": "f", "input": "x"}}],
}
ANSWER = {
    **HEAD,
    "object": "chat.completion",
    "choices": [{"index": 0, "message": MESSAGE, "logprobs": LOGPROBS, "finish_reason": "repetition"}],
    "usage": USAGE,
    "prompt_logprobs": None,
    "kv_transfer_params": {"a": 1},
}
TEXT = {
    **HEAD,
    "object": "text_completion",
    "choices": [
        {
            "index": 0,
            "text": "x",
            "finish_reason": None,
            "stop_reason": 5,
            "logprobs": {
                "text_offset": [0],
                "token_logprobs": [-1, None],
                "tokens": ["a"],
                "top_logprobs": [{"a": -1}, None],
            },
        }
    ],
    "usage": USAGE,
}
KINDS: dict[str, tuple[type[BaseModel], _models.Build, dict[str, Any]]] = {
    "chunk": (ChatCompletionChunk, _models.chat_chunk(), CHUNK),
    "answer": (ChatCompletion, _models.chat_completion(), ANSWER),
    "completion": (Completion, _models.completion(), TEXT),
}
MISSING = object()
VALUES: list[object] = [
    None,
    "x",
    "",
    "5",
    0,
    1,
    -1,
    10**20,
    5.0,
    1.5,
    True,
    False,
    [],
    {},
    [1],
    ["a"],
    [None],
    [[]],
    [{}],
    {"a": 1},
]


def places(value: object, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed(value: dict[str, Any], path: Path, new: object) -> dict[str, Any]:
    """A deep copy of ``value`` with ``new`` at ``path``, or without it."""
    copy: dict[str, Any] = json.loads(json.dumps(value))
    *way, last = path
    at: Any = copy
    for key in way:
        at = at[key]
    if new is MISSING:
        del at[last]
    else:
        at[last] = new
    return copy


def member(value: Any, key: Any) -> Any:
    return value[key] if isinstance(value, dict | list) else getattr(value, key)


def seen(value: object) -> object:
    """Everything about a value that can be told from outside: types, fields in their order, extras, fields set."""
    if isinstance(value, BaseModel):
        extra = value.model_extra or {}
        given = sorted(value.model_fields_set - set(extra))  # see test_fields_set_of_nested_models
        return type(value), [(name, seen(item)) for name, item in vars(value).items()], seen(extra), given
    if isinstance(value, list):
        return [seen(item) for item in value]
    if isinstance(value, dict):
        return {key: seen(item) for key, item in value.items()}
    return type(value), value


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_value_is_the_same(kind: str) -> None:
    """Unknown fields, nulls, logprobs, tool calls, a finish_reason of no list: value, dump, extras and fields set."""
    cls, build, value = KINDS[kind]
    ours, theirs = build(value), cls.model_construct(**value)
    assert seen(ours) == seen(theirs)
    assert ours == theirs
    assert ours.model_fields_set == theirs.model_fields_set
    assert ours.model_extra == theirs.model_extra
    for options in ({}, {"exclude_unset": True}, {"exclude_none": True}, {"by_alias": True}):
        dumps = [model.model_dump(mode="json", warnings=False, **options) for model in (ours, theirs)]  # type: ignore[arg-type]
        assert dumps[0] == dumps[1]
    assert ours.model_dump_json(warnings=False) == theirs.model_dump_json(warnings=False)


@pytest.mark.parametrize("kind", KINDS)
def test_any_one_member_may_be_missing(kind: str) -> None:
    """Wherever it stood: the default takes its place and it does not count as set."""
    cls, build, value = KINDS[kind]
    cases = [changed(value, path, MISSING) for path in places(value)]
    assert [seen(build(case)) for case in cases] == [seen(cls.model_construct(**case)) for case in cases]


@pytest.mark.parametrize("kind", KINDS)
def test_any_one_member_may_be_unknown(kind: str) -> None:
    """In every object: it is kept as it came."""
    cls, build, value = KINDS[kind]
    paths = [path for path in places(value) if isinstance(path[-1], str)]
    cases = [changed(value, (*path[:-1], "brand_new"), {"a": [1]}) for path in paths]
    assert [seen(build(case)) for case in cases] == [seen(cls.model_construct(**case)) for case in cases]


@pytest.mark.parametrize("kind", KINDS)
def test_any_one_member_may_be_of_any_type(kind: str) -> None:
    """The same as openai's, or else what the server sent, untouched, where openai bends it: inside a nested object that
    is valid but for this it makes 5 of "5" and 1 of true, and it looks for objects in a list where one object should be."""
    cls, build, value = KINDS[kind]
    bent = 0
    for path in places(value):
        for new in VALUES:
            case = changed(value, path, new)
            ours, theirs = build(case), cls.model_construct(**case)
            if seen(ours) != seen(theirs):
                bent += 1
                kept = reduce(member, path, ours)
                assert (type(kept), kept) == (type(new), new)
    assert bent / (len(VALUES) * len(list(places(value)))) < 0.06


@pytest.mark.parametrize("value", [None, 5, "x", [], [{}]])
def test_what_is_no_object_is_returned_as_it_is(value: object) -> None:
    """The tracker has refused such an answer before."""
    assert [build(value) for _, build, _ in KINDS.values()] == [value] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_object_has_every_default(kind: str) -> None:
    """Reading a field that is missing gives None and does not raise."""
    cls, build, _ = KINDS[kind]
    assert seen(build({})) == seen(cls.model_construct())


def test_fields_set_of_nested_models() -> None:
    """The one difference in a well-formed value: openai validates an optional nested object, and pydantic counts its
    unknown members as set; constructed ones, ours and its own outermost ones, do not count them."""
    value: dict[str, Any] = {**CHUNK, "usage": {**USAGE, "later": 1}}
    ours, theirs = _models.chat_chunk()(value), ChatCompletionChunk.model_construct(**value)
    assert ours.usage == theirs.usage
    assert theirs.usage is not None
    assert theirs.usage.model_fields_set - ours.usage.model_fields_set == {"later"}


def test_values_are_not_shared_between_answers() -> None:
    """Two answers of one shape have their own mappings and sets."""
    first, second = (_models.chat_chunk()({"id": "a", "later": 1}) for _ in range(2))
    assert vars(first) is not vars(second)
    assert first.model_extra is not second.model_extra
    assert first.model_fields_set is not second.model_fields_set


@pytest.mark.parametrize(
    ("build", "name"), [(_models.model_page, "SyncPage[Model]"), (_models.async_model_page, "AsyncPage[Model]")]
)
def test_model_pages(build: Any, name: str) -> None:
    """``models.list`` has openai's pages, with the servers' own members."""
    page = build()({"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 5}]})
    assert (type(page).__name__, page.data[0].id, page.data[0].max_model_len) == (name, "m", 5)


def test_builders_are_made_once() -> None:
    """Examining a class's fields is the slow part."""
    assert _models.model_builder(ChatCompletionChunk) is _models.chat_chunk()
    assert _models.chat_completion() is _models.chat_completion()


def test_request_id_is_where_openai_has_it() -> None:
    """``_request_id``, which is no field."""
    answer = _models.with_request_id(_models.chat_completion()(ANSWER), "r-1")
    assert answer._request_id == "r-1"
    assert "_request_id" not in answer.model_dump(warnings=False)


def test_a_message_put_back_into_a_request_is_what_the_server_sent() -> None:
    """Only what was set, unknown members included, under the names of the wire."""
    message = _models.chat_completion()(ANSWER).choices[0].message
    assert _models.jsonable(message) == MESSAGE


@pytest.mark.parametrize(
    ("value", "expected"),
    [((1, 2), [1, 2]), ({"a": 1}.items(), [("a", 1)]), (iter("ab"), ["a", "b"]), (range(2), [0, 1])],
)
def test_iterables_become_lists(value: object, expected: object) -> None:
    """What openai's types allow as an iterable is sent as a list."""
    assert _models.jsonable(value) == expected


def test_mappings_become_objects() -> None:
    """Not only dict is one."""
    from types import MappingProxyType

    assert _models.jsonable(MappingProxyType({"a": 1})) == {"a": 1}


@pytest.mark.parametrize("value", [object(), b"x", bytearray(b"x"), 1j])
def test_what_is_no_json_is_refused(value: object) -> None:
    """By the name of its type."""
    with pytest.raises(TypeError, match=f"a {type(value).__name__} cannot be written as JSON"):
        _models.jsonable(value)
