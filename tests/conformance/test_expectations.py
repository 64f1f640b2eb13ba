"""Every member that a vector can expect is read by a judge: an answer that was right is not, once that member is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
from tests.conformance.test_judge import WRONG_OF_A_CALL
from tests.conformance.test_server_judge import ERROR

from lastword._contract import load
from lastword.conformance._results import Case, CaseResult, Verdict
from lastword.conformance.server._engine import Engine
from lastword.conformance.server._player import ServerPlayer
from lastword.conformance.server._request import Target
from lastword.conformance.server._scene import Stage

SERVER: Mapping[str, Any] = load("schemas/vector-server.json")["$defs"]["expect"]["properties"]
CLIENT: Mapping[str, Any] = load("schemas/vector-client.json")["properties"]["expect"]["properties"]
BASES: Mapping[str, Mapping[str, Any]] = {
    "answer": load("vectors/server/good.answer.json"),
    "stream": load("vectors/server/good.stream.json"),
    "models": {
        "id": "own/models",
        "requirements": [],
        "call": {"endpoint": "models", "stream": False},
        "engine": [{"status": 200, "framing": "content-length", "steps": [{"json": {"object": "list"}}]}],
        "expect": {"status": 200, "body": {"object": "list"}},
    },
    "error": {
        "id": "own/error",
        "requirements": [],
        "call": {"stream": False},
        "engine": [{"status": 400, "framing": "content-length", "steps": [{"json": {"error": ERROR}}]}],
        "expect": {"status": 400, "error": {"code": ERROR["code"]}},
    },
}
LATE = [{"delay_ms": 400}]  # before the answer
BASES = {**BASES, "two": {**BASES["answer"], "load": {"requests": 2}}}
WRONG: list[tuple[str, str, Any]] = [
    ("answer", "status", 201),
    ("answer", "headers", {"x-missing": "1"}),
    ("stream", "terminal", "error"),
    ("answer", "text", "Hello!"),
    ("answer", "texts", {"1": "Hello"}),
    ("answer", "finish_reasons", {"0": "length"}),
    ("answer", "usage", {"prompt_tokens": 8}),
    ("answer", "tool_calls", [{"name": "f"}]),
    ("models", "body", {"object": "model"}),
    ("models", "empty", True),
    ("answer", "within_ms", 100),
    ("stream", "first_event_within_ms", 100),
    ("answer", "upstream_requests", 2),
    ("answer", "whole_at_least", 2),
    ("answer", "refused_at_least", 1),
    ("two", "at_work_at_most", 1),
    ("error", "error.code", "context_length_exceeded"),
    ("error", "error.category", "retryable"),
    ("error", "error.retryable", True),
    ("error", "error.param", "n"),
    ("error", "error.retry_after_ms", 1),
    ("error", "error.details", {"limit": 1}),
    ("error", "error.message_contains", ["cheese"]),
    ("error", "error.message_lacks", ["n"]),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as made:
        yield made


def played(engine: Engine, vector: Mapping[str, Any]) -> CaseResult:
    """The scripted engine is itself the server under test: it sends what its script says."""
    stage = Stage(Target(engine.host, engine.port, model="m"), engine, answer_limit=5)
    return ServerPlayer(stage).play(Case("server", vector))


def slow(base: str) -> dict[str, Any]:
    """A vector whose answer takes a while."""
    vector: dict[str, Any] = deepcopy(dict(BASES[base]))
    vector["requirements"] = []
    if base in ("answer", "stream", "two"):
        vector["engine"][0]["before"] = LATE
    return vector


@pytest.mark.parametrize(("base", "member", "wrong"), WRONG, ids=[member for _, member, _ in WRONG])
def test_a_wrong_expectation_of_a_server_is_noticed(engine: Engine, base: str, member: str, wrong: object) -> None:
    vector = slow(base)
    assert played(engine, vector).reasons == ()
    outer, _, inner = member.partition(".")
    vector["expect"][outer] = {**vector["expect"][outer], inner: wrong} if inner else wrong
    assert played(engine, vector).verdict is not Verdict.RIGHT


def test_every_member_is_among_these() -> None:
    """A member that a schema gains and no judge reads cannot be overlooked."""
    errors = {f"error.{name}" for name in SERVER["error"]["properties"]}
    elsewhere = {"engine_idle_within_ms"}  # a broken server is caught by it: test_server_runner, leaving/stream
    assert {member for _, member, _ in WRONG} | elsewhere == (set(SERVER) - {"error"}) | errors
    in_tests_of_their_own = {"gaps_ms", "codes_also_accepted"}  # test_judge
    assert {member for member, *_ in WRONG_OF_A_CALL} | in_tests_of_their_own == set(CLIENT)
