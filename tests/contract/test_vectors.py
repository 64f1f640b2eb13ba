"""The vectors are well made: valid, unique, complete and true to the rules about vectors."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.contract.conftest import ROOT, Errors

from lastword import _codes, _contract

SHARED = ("context_length_exceeded", "model_not_found", "quota_exceeded", "content_filtered", "rate_limit_exceeded")
"""Codes that OpenAI's API has as well."""

FIRED = {
    "connect": "connect_timeout",
    "first_token": "first_token_timeout",
    "idle": "generation_stalled",
    "total": "deadline_exceeded",
}
FILES = sorted((ROOT / "contract/vectors").glob("*/*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_vector_is_valid(path: Path, errors: Errors) -> None:
    """Each vector is as the schema of its kind demands, and its file bears its id."""
    vector = _contract.load(f"vectors/{path.parent.name}/{path.name}")
    assert errors(f"vector-{path.parent.name}", vector) == []
    assert vector["id"].replace("/", ".") == path.stem
    assert vector["$schema"] == f"../../schemas/vector-{path.parent.name}.json"


def test_ids_and_descriptions_are_unique(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """No id is used twice, over all kinds, and no description within one."""
    ids = Counter(vector["id"] for kind in all_vectors.values() for vector in kind)
    assert [name for name, count in ids.items() if count > 1] == []
    for kind in all_vectors.values():
        descriptions = Counter(vector["description"] for vector in kind)
        assert [text for text, count in descriptions.items() if count > 1] == []


def test_every_code_is_used_or_excused(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """Each code is what some vector ends in or has a server say, or there is a reason why not; never both."""
    used = set(_mentioned(all_vectors))
    excused = set(_contract.load("coverage.json")["codes"])
    assert set(_codes.CODES) - used == excused


def _mentioned(value: object) -> set[str]:
    """Every string under a member `code`, however deep."""
    if isinstance(value, dict):
        own = {value["code"]} if isinstance(value.get("code"), str) else set()
        return own.union(*map(_mentioned, value.values()))
    if isinstance(value, list):
        return set().union(*map(_mentioned, value))
    return set()


def test_expected_code_agrees_with_the_registry(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """A vector's outcome and category are those that the registry gives for its code."""
    for kind in ("client", "decode", "retry"):
        for vector in all_vectors[kind]:
            expect = vector["expect"]
            for code in [expect["code"], *expect.get("codes_also_accepted", [])]:
                info = _codes.CODES.get(code)
                if info is not None:
                    assert expect["outcome"] == info.outcome, vector["id"]
                    assert expect.get("category", info.category) == info.category, vector["id"]


def test_needs_are_declared(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """A client vector needs what its call uses and what its answer takes to be read, and nothing else."""
    for vector in all_vectors["client"]:
        call = vector["call"]
        body, timeouts = call.get("body", {}), call.get("timeouts", {})
        told = json.dumps([vector["server"], vector["expect"]])
        needed = {
            "retry": bool(call.get("retries")),
            "cancel": "cancel" in call,
            "connect": "connect" in timeouts,
            "first_token": "first_token" in timeouts,
            "idle": "idle" in timeouts,
            "deadline": "total" in timeouts,
            "profiles": "profile" in call,
            "headers": any({"HDR-1", "HDR-2", "HDR-3"} & set(vector["requirements"])),
            "completions": call.get("endpoint") == "completions",
            "models": call.get("endpoint") == "models",
            "choices": choices_of(body) > 1,
            "tools": '"tool_calls": [' in told or '"function_call": {' in told,
        }
        assert {name for name, used in needed.items() if used} == set(vector.get("needs", [])), vector["id"]


def choices_of(body: dict[str, Any]) -> int:
    """How many choices a request asks for: n times the number of prompts (OUT-3)."""
    prompt = body.get("prompt")
    several = isinstance(prompt, list) and len(prompt) > 1 and isinstance(prompt[0], str | list)
    return int(body.get("n", 1)) * (len(prompt) if prompt and several else 1)


def test_needs_are_capabilities(all_vectors: dict[str, list[dict[str, Any]]], registry: dict[str, Any]) -> None:
    """What vectors need is a capability of whoever they test; each is listed once, and each is needed by one at least."""
    listed = [(row["of"], row["capability"]) for row in registry["capabilities"]]
    needed = {
        ("server" if kind == "server" else "client", name)
        for kind, vectors in all_vectors.items()
        for vector in vectors
        for name in vector.get("needs", [])
    }
    assert (len(listed), set(listed)) == (len(set(listed)), needed)


def test_what_is_our_choice_says_so(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """The rules that SPEC.md calls choices, and codes that only this contract has, are marked wherever a client meets them."""
    for vector in [*all_vectors["client"], *all_vectors["decode"]]:
        expect, rules = vector["expect"], set(vector["requirements"])
        marked = {
            expect["code"] == "unknown_finish_reason",
            "STR-4" in rules and "STR-2" not in rules and expect["outcome"] == "incomplete",
            "CLS-10" in rules,
            vector["id"].startswith("body/") and finer_than_status(vector),
        }
        assert True not in marked or "choice" in vector, vector["id"]


def test_who_sees_it_otherwise_reports_something_else(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """A choice that excuses the expected outcome would excuse nothing."""
    marked = [vector for kind in all_vectors.values() for vector in kind if "choice_outcome" in vector]
    assert marked
    assert [each["id"] for each in marked if each["choice_outcome"] == each["expect"].get("outcome")] == []


def test_times_leave_room_for_a_slow_machine(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """What must be over within a time ends by itself a second before that at least, and no vector waits for long."""
    for vector in all_vectors["client"]:
        call, expect = vector["call"], vector["expect"]
        fired = [limit for name, limit in call.get("timeouts", {}).items() if limit and FIRED[name] == expect["code"]]
        ends = max([call.get("cancel", {}).get("after_ms", 0), *(limit * 1000 for limit in fired)])
        assert ends <= 2000, vector["id"]
        assert expect.get("within_ms", 9000) - ends >= 1000, vector["id"]


def finer_than_status(vector: dict[str, Any]) -> bool:
    """Whether a client that goes by the status alone reacts alike, under another name: the code is one that OpenAI's API does
    not have, or the server says it in no word that is made for programs."""
    (exchange,), code = vector["server"], _codes.CODES.get(vector["expect"]["code"])
    known = _codes.CODES[_codes.STATUS_CODES.get(exchange["status"], "invalid_request_error")]
    if code is None or code == known or code.category != known.category:
        return False
    words = {**dict(zip(_codes.CODES, _codes.CODES, strict=True)), **_codes.CODE_ALIASES, **_codes.TYPE_ALIASES}
    said = [words.get(word) for word in re.findall(r'"(\w+)"', json.dumps(exchange["steps"]))]
    return code.code not in {*SHARED} or code.code not in said


def test_profiles_named_by_vectors_exist(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """A vector that switches a profile on names one of the registry."""
    named = {vector.get("profile") for vector in all_vectors["decode"]}
    named |= {vector["call"].get("profile") for vector in all_vectors["client"]}
    assert named - {None} <= set(_codes.PROFILES)


def test_request_counts_agree_with_scripts(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """The number of requests that a client vector expects is that of its exchanges."""
    for vector in all_vectors["client"]:
        assert vector["expect"]["requests"] == len(vector["server"]), vector["id"]
        gaps = vector["expect"].get("gaps_ms", [])
        assert len(gaps) in {0, len(vector["server"]) - 1}, vector["id"]


def test_errors_of_the_contract_are_valid(all_vectors: dict[str, list[dict[str, Any]]], errors: Errors) -> None:
    """Where a scripted server speaks the contract's own shape, it does so correctly and with a status that fits."""
    seen = 0
    for vector in all_vectors["client"]:
        for exchange in vector["server"]:
            for step in exchange["steps"]:
                body = step.get("json")
                error = body.get("error") if isinstance(body, dict) else None
                if isinstance(error, dict) and "contract" in error:
                    seen += 1
                    assert errors("error", body) == [], vector["id"]
                    info = _codes.CODES.get(error["code"])
                    assert info is None or exchange["status"] in (info.http_statuses or (499,)), vector["id"]
    assert seen > 20


def test_there_are_enough() -> None:
    """The first set is as large as was promised."""
    assert Counter(path.parent.name for path in FILES)["decode"] >= 40
    assert Counter(path.parent.name for path in FILES)["client"] >= 60


def test_bare_bodies_name_their_content_type(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """The default content-type follows from `data` or `json` steps; where there is neither it is written down."""
    for vector in all_vectors["client"]:
        for exchange in vector["server"]:
            plain = not any({"data", "json"} & set(step) for step in exchange["steps"])
            if plain and exchange.get("status", 0) == 200:
                assert "content-type" in exchange.get("headers", {}), vector["id"]
