"""Reading the contract's data: found where it should be, and missed loudly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.conftest import ROOT

from lastword import _contract


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    _contract.contract_root.cache_clear()
    yield
    _contract.contract_root.cache_clear()


def test_a_file_that_is_not_there_is_an_error() -> None:
    """A name that the contract does not have is refused by name."""
    with pytest.raises(_contract.ContractDataError, match=r"schemas/nope\.json"):
        _contract.load("schemas/nope.json")


def test_a_directory_that_is_not_there_is_empty() -> None:
    """A kind without vectors is no error."""
    assert _contract.names("vectors/none") == []


def test_packaged_data_goes_before_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package reads its own files."""
    packaged = tmp_path / "contract"
    packaged.mkdir()
    for name in ("VERSION", "registry.json"):
        (packaged / name).write_bytes((ROOT / "contract" / name).read_bytes())
    monkeypatch.setattr(_contract, "files", lambda package: tmp_path)
    assert _contract.contract_root() == packaged


def test_data_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that the code was not generated from are not read."""
    packaged = tmp_path / "contract"
    packaged.mkdir()
    (packaged / "VERSION").write_text("0.9.0\n")
    (packaged / "registry.json").write_text("{}")
    monkeypatch.setattr(_contract, "files", lambda package: tmp_path)
    with pytest.raises(_contract.ContractDataError, match=r"0\.9\.0.*generate"):
        _contract.contract_root()


def test_no_data_at_all_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither packaged nor in a checkout: the message says where was looked."""
    monkeypatch.setattr(_contract, "files", lambda package: tmp_path)
    monkeypatch.setattr(_contract, "__file__", str(tmp_path / "a/b/c.py"))
    with pytest.raises(_contract.ContractDataError, match="install the package again"):
        _contract.contract_root()
