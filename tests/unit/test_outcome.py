"""The records that results, streams and errors carry."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from lastword._errors import InvalidToolArguments
from lastword._outcome import Attempt, Outcome, Partial, ToolCall


def call(arguments: str) -> ToolCall:
    return ToolCall("id", "f", arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        ('{"a": [1, null, "é"]}', {"a": [1, None, "é"]}),
        ("[1]", [1]),
        ("5", 5),
        ("null", None),
        ('{"a": 1, "a": 2}', {"a": 2}),
    ],
)
def test_arguments_are_parsed(text: str, expected: object) -> None:
    """Any JSON is; none at all is an empty object (TOOL-3)."""
    assert call(text).arguments == expected


@pytest.mark.parametrize(
    "text", ['{"a"', "{'a': 1}", "{} {}", "NaN", '{"a": Infinity}', "-Infinity", "[" * 100_000, "1" * 5000, "\ufeff{}"]
)
def test_arguments_that_are_no_json_are_never_repaired(text: str) -> None:
    """Reading them raises, with the text as the model wrote it (TOOL-1)."""
    with pytest.raises(InvalidToolArguments) as caught:
        _ = call(text).arguments
    assert (caught.value.tool_call, caught.value.outcome) == (call(text), "completed")
    assert caught.value.raw == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", True),
        ('{"a": 1}', True),
        ("", False),
        ("[]", False),
        ("5", False),
        ('{"a"', False),
        ("{" * 100_000, False),
    ],
)
def test_whole_means_one_object(text: str, expected: bool) -> None:
    """A number or list may be half of one; only a closed object proves itself."""
    assert call(text).whole == expected


@pytest.mark.parametrize("name", ["completed", "incomplete", "failed", "cancelled"])
def test_an_outcome_reads_as_its_name(name: str) -> None:
    """In text it is its name; ``completed`` asks for the one that counts."""
    outcome = Outcome(name)
    assert (str(outcome), f"{outcome}", outcome.completed) == (name, name, name == "completed")


RECORDS = [
    Outcome("failed", code="x", attempts=(Attempt(1, None, 200, "", 0.0, 1.0),)),
    Partial(text="a", texts={0: "a"}, tool_calls=(call("{}"),), finish_reasons={0: None}),
    Attempt(1, "x", None, "m", 0.0, 1.0, delay=2.0, timer="idle"),
    call("{}"),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_are_frozen_and_pickle(record: Any) -> None:
    """Hooks may keep and send them; nobody can change one."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, dataclasses.fields(record)[0].name, "changed")
    assert pickle.loads(pickle.dumps(record)) == record


def test_records_do_not_share_their_defaults() -> None:
    """Each has mappings of its own."""
    assert Partial().texts is not Partial().texts
    assert Outcome("completed").finish_reasons is not Outcome("completed").finish_reasons
