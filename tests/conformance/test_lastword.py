"""Both of lastword's clients pass the whole client profile, through the real command, however the bytes are cut."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from tests.conformance.command import Said, lastword

from lastword.conformance._baseline import Baseline
from lastword.conformance._cases import cases_of

HERE: Final = Path(__file__).parent
CLIENTS: Final = ("lastword-sync", "lastword-async")
ROUNDS: Final = ("all", "listed")  # segmentations; the second round plays a third of the first's cases again
pytestmark = pytest.mark.timeout(400)  # whichever test comes first waits for all runs


def run(client: str, segmentation: str, report: Path) -> Said:
    adapter = [sys.executable, str(HERE / "adapters" / f"{client.replace('-', '_')}.py")]
    known = ["--expected-failures", str(HERE / "known" / f"{client}.txt")]
    options = ["--segmentation", segmentation, "--jobs", "8", *known, "--report", str(report)]
    return lastword("conformance", "client", *options, "--", *adapter, timeout=200)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, tuple[Said, str]]]:
    """What each round of each client said, and its report; the two clients side by side, as most of it is waiting."""
    folder = tmp_path_factory.mktemp("reports")
    said: dict[str, dict[str, tuple[Said, str]]] = {client: {} for client in CLIENTS}
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        for cut in ROUNDS:
            reports = {client: folder / f"{client}-{cut}.json" for client in CLIENTS}
            running = {client: pool.submit(run, client, cut, reports[client]) for client in CLIENTS}
            for client, future in running.items():
                said[client][cut] = (future.result(), reports[client].read_text(encoding="utf-8"))
    return said


@pytest.mark.parametrize("client", CLIENTS)
def test_every_vector_is_right_in_every_segmentation(client: str, runs: dict[str, dict[str, tuple[Said, str]]]) -> None:
    """No failure, no skip, and nothing left out of the comparison."""
    for cut, (said, text) in runs[client].items():
        assert said.status == 0, said.out + said.err
        report = json.loads(text)
        assert {each["verdict"] for each in report["cases"]} == {"right"}
        assert [each["name"] for each in report["cases"] if each.get("unreported")] == []
        assert len(report["cases"]) == len(cases_of("client", cut))


@pytest.mark.parametrize("client", CLIENTS)
def test_two_runs_report_the_same(client: str, runs: dict[str, dict[str, tuple[Said, str]]]) -> None:
    """Line for line, so that a report can be committed."""
    first, again = ({line.rstrip(",") for line in text.splitlines()} for _, text in runs[client].values())
    assert {line for line in again if '"verdict"' in line} <= first


@pytest.mark.parametrize("client", CLIENTS)
def test_no_failure_of_lastword_is_accepted(client: str) -> None:
    """The list of its known failures is empty, and stays so: a failure is mended."""
    assert Baseline.read(HERE / "known" / f"{client}.txt").lines == ()
