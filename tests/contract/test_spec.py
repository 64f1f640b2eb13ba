"""SPEC.md: every rule is covered or excused, and every example is valid."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.contract.conftest import ROOT, Errors

from lastword import _contract

SPEC = (ROOT / "contract/SPEC.md").read_text(encoding="utf-8")
RULES = set(re.findall(r"^### ([A-Z]{2,4}-\d+)$", SPEC, re.MULTILINE))
EXAMPLES = re.findall(r"^```json (\S+)\n(.*?)^```", SPEC, re.MULTILINE | re.DOTALL)


def test_every_rule_is_covered_or_excused(all_vectors: dict[str, list[dict[str, Any]]]) -> None:
    """Each rule has a vector or a reason why none can show it, never both; no vector names a rule that is not there."""
    covered = {rule for kind in all_vectors.values() for vector in kind for rule in vector["requirements"]}
    excused = set(_contract.load("coverage.json")["rules"])
    assert covered - RULES == set()
    assert RULES - covered - excused == set()
    assert excused & covered == set()
    assert excused - RULES == set()


def test_there_are_examples() -> None:
    """The examples are found at all."""
    assert {schema for schema, _ in EXAMPLES} == {"error", "stream-error-event", "outcome", "record"}


@pytest.mark.parametrize(("schema", "text"), EXAMPLES, ids=[schema for schema, _ in EXAMPLES])
def test_example_is_valid(schema: str, text: str, errors: Errors) -> None:
    """Each example is valid against the schema that it names."""
    assert errors(schema, json.loads(text)) == []


def test_numbers_of_the_example_message_are_in_details() -> None:
    """The error example keeps ERR-3 itself: the details account for every number of the message."""
    error = json.loads(EXAMPLES[0][1])["error"]
    assert {int(number) for number in re.findall(r"\d+", error["message"])} <= set(error["details"].values())


def test_rules_named_in_code_exist() -> None:
    """A rule id in a comment or docstring of the packages names a rule of SPEC.md."""
    areas = "|".join(sorted({rule.split("-")[0] for rule in RULES}))
    unknown = [
        f"{path.relative_to(ROOT)}: {rule}"
        for package in ("sdk/lastword", "server_shim/lastword_shim")
        for path in sorted((ROOT / package).rglob("*.py"))
        for rule in re.findall(rf"\b(?:{areas})-\d+\b", path.read_text(encoding="utf-8"))
        if rule not in RULES
    ]
    assert unknown == []
