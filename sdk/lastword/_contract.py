"""The contract's data files: registry, dialects, schemas, vectors, profiles.

Needed by the conformance runner and by tests, never by a client at work: what that needs is generated into ``_codes.py``.
A wheel carries the files as ``lastword/contract``; in a checkout they are the ``contract`` directory itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from lastword._codes import CONTRACT_VERSION


class ContractDataError(RuntimeError):
    """The contract's files are not there, or are of another version than the code generated from them."""


@cache
def contract_root() -> Traversable:
    """The directory that holds ``VERSION`` and ``registry.json``; raises ``ContractDataError``."""
    checkout = Path(__file__).resolve().parents[2] / "contract"
    candidates: tuple[Traversable, ...] = (files("lastword") / "contract", checkout)
    for root in candidates:
        if (root / "registry.json").is_file():
            version = (root / "VERSION").read_text(encoding="utf-8").strip()
            if version != CONTRACT_VERSION:
                raise ContractDataError(
                    f"{root} has contract {version}, but lastword/_codes.py was generated from {CONTRACT_VERSION}: "
                    "run scripts/generate.py, or install the package again"
                )
            return root
    looked = " nor ".join(str(root) for root in candidates)
    raise ContractDataError(f"the contract's files are neither in {looked}: install the package again")


def load(name: str) -> Any:
    """The parsed JSON of one file, such as ``registry.json`` or ``schemas/error.json``."""
    file = contract_root().joinpath(*name.split("/"))
    if not file.is_file():
        raise ContractDataError(f"the contract has no file {name}")
    return json.loads(file.read_text(encoding="utf-8"))


def names(directory: str) -> list[str]:
    """The JSON files in a directory of the contract, as ``directory/file.json``, sorted."""
    entries = contract_root().joinpath(*directory.split("/"))
    if not entries.is_dir():
        return []
    return sorted(f"{directory}/{entry.name}" for entry in entries.iterdir() if entry.name.endswith(".json"))


def schemas() -> dict[str, Any]:
    """Every JSON Schema by its ``$id``, ready for a registry of a JSON Schema library."""
    loaded = (load(name) for name in names("schemas"))
    return {schema["$id"]: schema for schema in loaded}


def vectors(kind: str) -> Iterator[dict[str, Any]]:
    """The vectors of one kind (``decode``, ``client``, ``retry``, ``server``) in the order of their file names."""
    for name in names(f"vectors/{kind}"):
        yield load(name)
