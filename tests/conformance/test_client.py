"""The client vectors: the sync and the async client against a scripted server on a real socket."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import pytest

from lastword._contract import load, vectors
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
    played = timed(request).get(request.node.nodeid)
    problems = play_client(vector, segmentation, mode) if played is None else played.result()
    assert not problems, "\n".join([vector["description"], *problems])


def timed(request: pytest.FixtureRequest) -> dict[str, Problems]:
    """Play the selected vectors that wait, side by side, at the first call; all are over on return. By node id."""
    session = request.session
    if TIMED not in session.stash:
        session.stash[TIMED] = played = {}
        for name in ("ending.whole", "answer.whole"):  # what a first call loads takes longer than some timers
            assert play_client(load(f"vectors/client/{name}.json"), "event", "sync") == []
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            for item in session.items:
                if not isinstance(item, pytest.Function) or item.function.__module__ != __name__:
                    continue
                case: dict[str, Any] = item.callspec.params
                if waits(case["vector"]):
                    played[item.nodeid] = pool.submit(play_client, case["vector"], case["segmentation"], case["mode"])
    return session.stash[TIMED]
