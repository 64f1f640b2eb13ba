"""The scoreboard's table and its command: what it names exists and is pinned, and what goes wrong is told as what it is."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Final

import environments
import play
import pytest

from setup_steps import SetupError  # where environments.py has put it on the path

ROOT: Final = Path(__file__).resolve().parents[2]
TABLE: Final = environments.table()
ADAPTERS: Final = ROOT / "tests" / "conformance" / "adapters"
LASTWORD: Final = ["--run", "answer/whole", "--", sys.executable, str(ADAPTERS / "lastword_sync.py")]
CREDULOUS = """
import sys
sys.path.insert(0, {folder!r})
from protocol import serve

serve(lambda case: {{"outcome": "completed", "code": None}}, name="credulous", version="1", capabilities=[])
"""


@pytest.mark.parametrize("name", TABLE["environments"])
def test_every_environment_is_pinned_to_what_the_table_says(name: str) -> None:
    """A package that the table names has that version in the pins."""
    packages = TABLE["environments"][name]["packages"]
    if environments.is_node(name):
        locked = json.loads((environments.HERE / "node" / name / "package-lock.json").read_text(encoding="utf-8"))
        versions = {
            place.rpartition("node_modules/")[2]: each["version"] for place, each in locked["packages"].items() if place
        }
        pinned = [f"{package}@{version}" for package, version in versions.items()]
        assert all(each.get("integrity") for place, each in locked["packages"].items() if place)
    else:
        pinned = (environments.HERE / "pins" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        assert all(re.fullmatch(r"[\w.-]+==[\w.+!]+", line) for line in pinned)
    exact = {re.sub(r"\[.*\]", "", package) for package in packages if "@" in package or "==" in package}
    assert exact
    assert exact <= set(pinned)


def test_every_pin_belongs_to_an_environment() -> None:
    kept = {path.stem for path in (environments.HERE / "pins").iterdir()} | {
        path.name for path in (environments.HERE / "node").iterdir()
    }
    assert kept == set(TABLE["environments"])


@pytest.mark.parametrize("name", TABLE["clients"])
def test_every_client_has_its_adapter_and_environment(name: str) -> None:
    environment, adapter, *_ = TABLE["clients"][name]
    assert environment in ("development", *TABLE["environments"])
    assert (ADAPTERS / adapter).is_file()


@pytest.mark.parametrize("name", TABLE["java"])
def test_every_client_for_java_has_its_module(name: str) -> None:
    module, *_ = TABLE["java"][name]
    assert f"<module>{module}</module>" in (environments.JAVA / "pom.xml").read_text(encoding="utf-8")


def test_names_and_patterns_choose() -> None:
    assert [each.name for each in play.chosen("openai-node, lastword-*")] == [
        "lastword-sync",
        "lastword-async",
        "openai-node",
        "lastword-java",
    ]
    assert [each.report for each in play.chosen("")] == [each.report for each in play.chosen("clients, servers")]
    assert {each.kind for each in play.chosen("servers")} == {"server"}


def test_a_name_that_nobody_has_is_told_with_those_that_there_are() -> None:
    with pytest.raises(SetupError, match=r"ONLY=opena: there is .*openai-python.*; clients, servers"):
        play.chosen("opena")


def test_an_environment_that_nobody_has_is_told() -> None:
    with pytest.raises(SetupError, match="no environment is called 'opena'; there are openai-python"):
        environments.ready("opena")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Reports and logs go to a folder of the test's."""
    monkeypatch.setattr(play, "REPORTS", tmp_path / "reports")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_one_that_fails_does_not_stop_the_others(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    credulous = places / "credulous.py"
    credulous.write_text(CREDULOUS.format(folder=str(ADAPTERS)), encoding="utf-8")
    fails = ["--run", "ending/cut-chunked", "--", sys.executable, str(credulous)]
    assert (
        play.play_all(
            [play.Tested("client", "credulous", lambda: fails), play.Tested("client", "ours", lambda: LASTWORD)]
        )
        == 0
    )
    told = capsys.readouterr().out
    assert "1/2 client credulous" in told
    assert "credulous 1: 1 silent (" in told
    assert "lastword-sync" in told
    assert {each.name for each in (places / "reports").iterdir()} == {"client-credulous.json", "client-ours.json"}


def test_a_suite_that_does_not_work_stops_it_and_says_why(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = play.Tested("client", "broken", lambda: ["--", "false"])
    assert play.play_all([broken, play.Tested("client", "ours", lambda: LASTWORD)]) == 2
    told = capsys.readouterr()
    assert "the suite did not work (exit 2)" in told.err
    assert "ended with exit status 1 without an answer" in told.err
    assert "2/2" not in told.out
    assert not list((places / "reports").iterdir())
