"""The contract's files agree with their schemas, with each other and with what is generated from them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.contract.conftest import ROOT, Errors

from lastword import _codes, _contract

SCHEMA_FILES = _contract.names("schemas")


@pytest.mark.parametrize("name", SCHEMA_FILES)
def test_schema_is_itself_valid_and_named_by_its_file(name: str) -> None:
    """Each schema is JSON Schema 2020-12, and its `$id` is its file's name with the major version only."""
    schema = _contract.load(name)
    Draft202012Validator.check_schema(schema)
    stem = name.removeprefix("schemas/").removesuffix(".json")
    assert schema["$id"] == f"urn:lastword:contract:{_codes.CONTRACT}:{stem}"


@pytest.mark.parametrize("name", ["registry", "dialects", "coverage"])
def test_file_is_valid(name: str, errors: Errors) -> None:
    """Registry, dialects and coverage are as their schemas demand."""
    assert errors(name, _contract.load(f"{name}.json")) == []


@pytest.mark.parametrize("name", _contract.names("profiles"))
def test_profile_lists_vectors_that_exist(
    name: str, errors: Errors, all_vectors: dict[str, list[dict[str, Any]]]
) -> None:
    """A profile is valid and names no vector that is not there."""
    profile = _contract.load(name)
    assert errors("profile", profile) == []
    assert set(profile["vectors"]) <= {vector["id"] for kind in all_vectors.values() for vector in kind}


def test_generated_files_are_fresh() -> None:
    """`scripts/generate.py --check` finds nothing stale."""
    command = [sys.executable, str(ROOT / "scripts/generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_versions_agree() -> None:
    """VERSION, package.json, the changelog's newest entry and the generated code say the same."""
    contract = ROOT / "contract"
    version = (contract / "VERSION").read_text(encoding="utf-8").strip()
    package = json.loads((contract / "package.json").read_text(encoding="utf-8"))
    newest = re.search(r"^## (\S+)", (contract / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert {version, package["version"], newest[1], _codes.CONTRACT_VERSION} == {version}
    assert version.startswith(f"{_codes.CONTRACT}.")


def test_package_has_every_file() -> None:
    """Nothing of the contract's directory is left out of the npm package."""
    contract = ROOT / "contract"
    listed = {name.rstrip("/") for name in json.loads((contract / "package.json").read_text())["files"]}
    assert {path.name for path in contract.iterdir()} == listed | {
        "README.md",
        "package.json",
        "LICENSE",
    }  # npm takes these


def test_licence_is_the_projects() -> None:
    """Whoever copies the directory has the licence with it, and it is the same one."""
    assert (ROOT / "contract/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_registry_and_code_agree(registry: dict[str, Any]) -> None:
    """The generated tables have every code, finish_reason and profile of the registry with the same meaning."""
    for row in registry["codes"]:
        info = _codes.CODES[row["code"]]
        assert (info.category, info.outcome, info.http_status) == (row["category"], row["outcome"], row["http_status"])
        assert info.anthropic_type == row["anthropic_type"]
        assert (info.retry, info.retry_own_timer) == (row["retry"], row.get("retry_own_timer", row["retry"]))
    assert list(_codes.CODES) == [row["code"] for row in registry["codes"]] == list(_codes.Code)
    reasons = [row["value"] for row in registry["finish_reasons"]]
    assert list(_codes.FINISH_REASONS) == list(_codes.Finish) == reasons
    assert dict(_codes.STOP_REASONS) == registry["stop_reasons"]
    assert dict(_codes.INCOMPLETE_REASONS) == registry["incomplete_reasons"]
    assert list(_codes.PROFILES) == [row["name"] for row in registry["profiles"]]


def test_outcomes_and_categories_agree(registry: dict[str, Any]) -> None:
    """A cancelled code is of outcome and category cancelled; a fixable one is never sent again; others may be."""
    for row in registry["codes"]:
        assert (row["category"] == "cancelled") == (row["outcome"] == "cancelled"), row["code"]
        assert (row["retry"] == "never") == (row["category"] == "fixable"), row["code"]
        assert (row["retry"] == "caller") == (row["category"] == "cancelled"), row["code"]


def test_record_states_lead_to_each_other(registry: dict[str, Any]) -> None:
    """Every state can be reached from `received`, and terminal states lead nowhere."""
    states = {row["state"]: row for row in registry["record_states"]}
    reached = {"received"}
    while (grown := reached | {after for name in reached for after in states[name]["next"]}) != reached:
        reached = grown
    assert reached == set(states)
    assert all(row["terminal"] == (row["next"] == []) for row in states.values())
    listed = _contract.load("schemas/record.json")["properties"]["state"]["enum"]
    assert set(listed) == {name for name, row in states.items() if row["terminal"]}
