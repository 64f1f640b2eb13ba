"""The decode vectors on the pure core, under every way to cut the bytes."""

from __future__ import annotations

from typing import Any

import pytest

from lastword._contract import vectors
from lastword.conformance.core._decode import SEGMENTATIONS, play_decode

CASES = [
    pytest.param(vector, segmentation, id=f"{vector['id']}/seg:{segmentation}")
    for vector in vectors("decode")
    for segmentation in vector.get("segmentations", SEGMENTATIONS)
]


@pytest.mark.parametrize(("vector", "segmentation"), CASES)
def test_vector(vector: dict[str, Any], segmentation: str) -> None:
    problems = play_decode(vector, segmentation)
    assert not problems, "\n".join([vector["description"], *problems])
