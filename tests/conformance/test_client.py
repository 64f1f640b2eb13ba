"""The client vectors: the sync and the async client against a scripted server on a real socket."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import pytest

from lastword._contract import vectors
from lastword.conformance._client import Mode, play_client

Problems: TypeAlias = "Future[list[str]]"
TIMED = pytest.StashKey[dict[str, Problems]]()
AT_A_TIME = 12  # they sleep nearly all the time; what they measure is far wider than what they cost each other


def waits(vector: dict[str, Any]) -> bool:
    """Whether most of a vector's time is waiting, by design."""
    text = json.dumps(vector)
    return any(f'"{name}"' in text for name in ("timeouts", "after_ms", "gaps_ms", "delay_ms"))


CASES = [
    pytest.param(vector, segmentation, id=f"{vector['id']}/seg:{segmentation}")
    for vector in vectors("client")
    for segmentation in vector.get("segmentations", ["event"])
]


@pytest.mark.parametrize(("vector", "segmentation"), CASES)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector(vector: dict[str, Any], segmentation: str, mode: Mode, request: pytest.FixtureRequest) -> None:
    if waits(vector):
        problems = timed(request)[request.node.nodeid].result()
    else:
        problems = play_client(vector, segmentation, mode)
    assert not problems, "\n".join([vector["description"], *problems])


def timed(request: pytest.FixtureRequest) -> dict[str, Problems]:
    """Play the selected vectors that wait, side by side, when the first of them is due; all are over on return."""
    session = request.session
    if TIMED not in session.stash:
        cases = {
            item.nodeid: item.callspec.params
            for item in session.items
            if isinstance(item, pytest.Function) and getattr(item, "originalname", "") == "test_vector"
            if item.path == request.path and waits(item.callspec.params["vector"])
        }
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            session.stash[TIMED] = {
                name: pool.submit(play_client, case["vector"], case["segmentation"], case["mode"])
                for name, case in cases.items()
            }
    return session.stash[TIMED]
