"""Reads contract/VERSION, registry.json and dialects.json, and refuses what no generated file could be right about.

The JSON Schemas say what each member looks like; here are only the relations that a schema cannot express (unique codes, codes
that exist, outcomes that agree), because the generator has no JSON Schema library to call.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class ContractError(ValueError):
    """The contract's files contradict themselves; the message says where."""


@dataclass(frozen=True)
class Contract:
    """The contract's data as read: `registry` and `dialects` are the parsed JSON documents."""

    version: str
    registry: Entry
    dialects: Entry

    @property
    def codes(self) -> list[Entry]:
        return list(self.registry["codes"])


def load(directory: Path) -> Contract:
    """Read and check the files in `directory`; raises ContractError, OSError or ValueError."""
    version = (directory / "VERSION").read_text(encoding="utf-8").strip()
    registry = json.loads((directory / "registry.json").read_text(encoding="utf-8"))
    dialects = json.loads((directory / "dialects.json").read_text(encoding="utf-8"))
    contract = Contract(version, registry, dialects)
    _check_version(contract)
    _check_codes(contract)
    _check_references(contract)
    return contract


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ContractError(message)


def _check_version(contract: Contract) -> None:
    major = contract.version.split(".", 1)[0]
    semver = r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?"
    _require(re.fullmatch(semver, contract.version) is not None, f"VERSION {contract.version!r} is no semantic version")
    _require(contract.registry["contract"] == major, f"registry.json says contract {contract.registry['contract']!r}")
    _require(contract.dialects["contract"] == major, f"dialects.json says contract {contract.dialects['contract']!r}")


def _check_codes(contract: Contract) -> None:
    names = [entry["code"] for entry in contract.codes]
    known = {
        "category": {entry["category"] for entry in contract.registry["categories"]},
        "outcome": {entry["outcome"] for entry in contract.registry["outcomes"]},
        "retry": {entry["rule"] for entry in contract.registry["retry_rules"]},
    }
    for entry in contract.codes:
        name = entry["code"]
        _require(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) is not None, f"code {name!r} is not lower_snake")
        _require(names.count(name) == 1, f"code {name!r} is listed twice")
        for member, allowed in known.items():
            _require(entry[member] in allowed, f"{name}: unknown {member} {entry[member]!r}")
        _require(entry.get("retry_own_timer", entry["retry"]) in known["retry"], f"{name}: unknown retry_own_timer")
        statuses = entry.get("http_statuses")
        _require(
            not statuses or statuses[0] == entry["http_status"], f"{name}: http_statuses must begin with http_status"
        )
        _require(entry["outcome"] != "completed", f"{name}: a code never means completed")


def _check_references(contract: Contract) -> None:
    names = {entry["code"] for entry in contract.codes}
    for reason in contract.registry["finish_reasons"]:
        _require(reason["success"] == (reason["code"] is None), f"finish_reason {reason['value']!r}: success or a code")
        _require(reason["code"] is None or reason["code"] in names, f"finish_reason {reason['value']!r}: unknown code")
    successes = {row["value"] for row in contract.registry["finish_reasons"] if row["success"]}
    for title in ("stop_reasons", "incomplete_reasons"):
        for word, reason in contract.registry[title].items():
            _require(reason in successes, f"{title}.{word}: {reason!r} is no finish_reason of a success")
    for title, table in contract.dialects.items():
        if isinstance(table, dict):
            for key, code in table.items():
                _require(code in names, f"dialects.json {title}.{key}: unknown code {code!r}")
    for row in contract.dialects["message_patterns"]:
        _require(row["code"] in names, f"dialects.json message_patterns: unknown code {row['code']!r}")
        groups = re.compile(row["pattern"]).groups
        _require(
            groups >= len(row.get("details", [])), f"dialects.json pattern {row['pattern']!r} has only {groups} groups"
        )
