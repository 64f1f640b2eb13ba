"""The client vectors: lastword's sync and async client, through their adapters' functions, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import lastword_async
import lastword_sync
import pytest

from lastword.conformance._cases import cases_of
from lastword.conformance._results import Case, CaseResult, Verdict
from lastword.conformance.client._player import play_client

Results: TypeAlias = "dict[str, Future[CaseResult]]"
PLAYED = pytest.StashKey[Results]()
AT_A_TIME = 12  # they sleep nearly all the time; what they measure is far wider than what they cost each other
RUN: Final[dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "sync": lastword_sync.run,
    "async": lastword_async.run,
}
CASES = cases_of("client")
WHOLE = [case for case in CASES if case.name in ("ending/whole", "answer/whole")]


def play(case: Case, mode: str) -> CaseResult:
    return play_client(case, lambda message, _: {"result": RUN[mode](message)})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("mode", RUN)
def test_vector(case: Case, mode: str, request: pytest.FixtureRequest) -> None:
    result = played(request.session)[request.node.nodeid].result()
    shown = [case.vector["description"], *result.reasons, f"said: {result.said}", *result.trace]
    assert result.verdict is Verdict.RIGHT, "\n".join(shown)
    assert result.unreported == (), "lastword's own clients report everything"


def played(session: pytest.Session) -> Results:
    """Play all that is selected, side by side, at the first call; all are over on return. By node id."""
    if PLAYED not in session.stash:
        for case in WHOLE:  # what a first call loads takes longer than some timers
            assert play(case, "sync").verdict is Verdict.RIGHT
        items = [each for each in session.items if isinstance(each, pytest.Function)]
        mine: dict[str, dict[str, Any]] = {
            item.nodeid: item.callspec.params for item in items if item.function.__module__ == __name__
        }
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            session.stash[PLAYED] = {name: pool.submit(play, **given) for name, given in mine.items()}
    return session.stash[PLAYED]
