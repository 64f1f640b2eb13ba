"""The contract's files, read once, and a validator for each of its schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lastword import _contract
from lastword.conformance._schemas import violations

ROOT = Path(__file__).resolve().parents[2]

Errors = Callable[[str, object], list[str]]


@pytest.fixture(scope="session")
def registry() -> dict[str, Any]:
    loaded: dict[str, Any] = _contract.load("registry.json")
    return loaded


@pytest.fixture(scope="session")
def all_vectors() -> dict[str, list[dict[str, Any]]]:
    """Vectors by kind; the directories say which kinds there are."""
    kinds = sorted(path.name for path in (ROOT / "contract/vectors").iterdir() if path.is_dir())
    return {kind: list(_contract.vectors(kind)) for kind in kinds}


@pytest.fixture(scope="session")
def errors() -> Errors:
    """`errors(schema name, instance)`: what the schema objects to, empty if nothing."""
    return violations


@pytest.fixture
def error_body() -> dict[str, Any]:
    """A valid error body, to be spoilt."""
    body: dict[str, Any] = json.loads(
        '{"error": {"message": "The queue is full.", "type": "server_error", "param": null, "code": "queue_overloaded",'
        '"category": "retryable", "retryable": true, "retry_after_ms": 2000, "request_id": "req-1", "origin": "shim",'
        '"details": {}, "contract": "1"}}'
    )
    return body
