"""The adapter of an engine that is not installed here."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest


def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("lastword_shim.engine.vllm")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter, on a stand-in for the one exception that it imports."""

    class VLLMClientError(Exception): ...

    class VLLMValidationError(VLLMClientError):
        def __init__(self, message: str, *, parameter: str, value: object) -> None:
            super().__init__(message)
            self.parameter, self.value = parameter, value

    exceptions = types.ModuleType("vllm.exceptions")
    exceptions.VLLMValidationError = VLLMValidationError  # type: ignore[attr-defined]
    exceptions.VLLMClientError = VLLMClientError  # type: ignore[attr-defined]
    package = types.ModuleType("vllm")
    package.__version__ = "0.99.0"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", package)
    monkeypatch.setitem(sys.modules, "vllm.exceptions", exceptions)
    _forget(monkeypatch)
    import lastword_shim.engine.vllm as adapter

    yield adapter
    _forget(monkeypatch)
