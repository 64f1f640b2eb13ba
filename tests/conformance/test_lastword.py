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
ROUNDS: Final = 2
pytestmark = pytest.mark.timeout(400)  # whichever test comes first waits for all runs


def run(client: str, report: Path) -> Said:
    adapter = [sys.executable, str(HERE / "adapters" / f"{client.replace('-', '_')}.py")]
    known = ["--expected-failures", str(HERE / "known" / f"{client}.txt")]
    options = ["--segmentation", "all", "--jobs", "8", *known, "--report", str(report)]
    return lastword("conformance", "client", *options, "--", *adapter, timeout=200)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Said, str]]]:
    """What each run of each client said, and its report; the two clients side by side, as most of it is waiting."""
    folder = tmp_path_factory.mktemp("reports")
    reports = {client: [folder / f"{client}-{number}.json" for number in range(ROUNDS)] for client in CLIENTS}
    said: dict[str, list[tuple[Said, str]]] = {client: [] for client in CLIENTS}
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        for number in range(ROUNDS):
            running = {client: pool.submit(run, client, reports[client][number]) for client in CLIENTS}
            for client, future in running.items():
                said[client].append((future.result(), reports[client][number].read_text(encoding="utf-8")))
    return said


@pytest.mark.parametrize("client", CLIENTS)
def test_every_vector_is_right_in_every_segmentation(client: str, runs: dict[str, list[tuple[Said, str]]]) -> None:
    """No failure, no skip, and nothing left out of the comparison."""
    for said, text in runs[client]:
        assert said.status == 0, said.out + said.err
        report = json.loads(text)
        assert {each["verdict"] for each in report["cases"]} == {"right"}
        assert [each["name"] for each in report["cases"] if each.get("unreported")] == []
        assert len(report["cases"]) == len(cases_of("client", "all"))


@pytest.mark.parametrize("client", CLIENTS)
def test_two_runs_give_the_same_report(client: str, runs: dict[str, list[tuple[Said, str]]]) -> None:
    """Byte for byte, so that a report can be committed."""
    assert len({text for _, text in runs[client]}) == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_no_failure_of_lastword_is_accepted(client: str) -> None:
    """The list of its known failures is empty, and stays so: a failure is mended."""
    assert Baseline.read(HERE / "known" / f"{client}.txt").lines == ()
