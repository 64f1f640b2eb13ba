"""The client vectors: the sync and the async client against a scripted server on a real socket."""

from __future__ import annotations

from typing import Any

import pytest

from lastword._contract import vectors
from lastword.conformance._client import Mode, play_client

CASES = [
    pytest.param(vector, segmentation, id=f"{vector['id']}/seg:{segmentation}")
    for vector in vectors("client")
    for segmentation in vector.get("segmentations", ["event"])
]


@pytest.mark.parametrize(("vector", "segmentation"), CASES)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector(vector: dict[str, Any], segmentation: str, mode: Mode) -> None:
    problems = play_client(vector, segmentation, mode)
    assert not problems, "\n".join([vector["description"], *problems])
