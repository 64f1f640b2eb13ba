"""The contract's README keeps its word: its adapter runs, its commands exist, its tables are complete, its links lead on."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.command import Said, cases, lastword

from lastword import _contract
from lastword.conformance._baseline import Baseline
from lastword.conformance._cases import cases_of, matches
from lastword.conformance._results import Verdict

CONTRACT = Path(__file__).resolve().parents[2] / "contract"
README = (CONTRACT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    return blocks[0]


def commands(language: str, start: str) -> list[str]:
    """The commands of all blocks of a language that begin so, without their comments."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    lines = [line.strip().removeprefix("- run: ") for text in blocks for line in text.splitlines()]
    return [line.partition("  #")[0].strip() for line in lines if line.startswith(start)]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the README's adapter and baseline in it; the working directory."""
    assert shutil.which("node"), "the README's adapter needs Node 18 or newer: apt-get install nodejs"
    (tmp_path / "adapter.mjs").write_text(block("js"), encoding="utf-8")
    (tmp_path / "conformance.txt").write_text(block("text"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*options: str) -> Said:
    """The command that the README gives, with more options."""
    (command,) = commands("sh", "lastword conformance client")
    words = shlex.split(command)
    return lastword(*words[1:3], *options, *words[3:])


def test_the_adapter_shows_where_a_loop_by_hand_is_silent(project: Path) -> None:
    done = run("--run", "ending/*", "--report", "report.json")
    verdicts = {name: each["verdict"] for name, each in cases(project / "report.json").items()}
    assert (done.status, done.err) == (1, "")
    assert {name for name, verdict in verdicts.items() if verdict == "right"} == {
        "ending/whole", "ending/whole@1", "ending/cut-chunked", "ending/reset"
    }  # fmt: skip
    assert {name for name, verdict in verdicts.items() if verdict == "silent"} >= {
        "ending/no-done", "ending/no-finish-no-done", "ending/half-event", "ending/empty-body", "ending/close-framing"
    }  # fmt: skip
    assert verdicts["ending/stall"] == "skipped"


def test_the_adapter_answers_every_case(project: Path) -> None:
    """It neither breaks the protocol nor hangs, whatever it is told to call."""
    run("--report", "report.json")
    verdicts = {each["verdict"] for each in cases(project / "report.json").values()}
    assert verdicts & {"hang", "crash", "unable"} == set()
    assert len(verdicts) > 4


def test_the_baseline_excuses_what_it_lists_and_nothing_else(project: Path) -> None:
    """With the options that the README's workflow gives."""
    (command,) = commands("yaml", "lastword conformance client")
    options = shlex.split(command)[3:7]
    assert options[::2] == ["--expected-failures", "--junit"]
    assert run("--run", "ending/no-done", *options).status == 0
    assert run("--run", "ending/no-done", "--run", "ending/half-event", *options).status == 1
    assert (project / "results.xml").is_file()


def test_every_line_of_the_baseline_names_a_case(project: Path) -> None:
    names = [case.name for case in cases_of("client")]
    lines = Baseline.read(project / "conformance.txt").lines
    assert len(lines) == 3
    assert all(any(matches(line.pattern, name) for name in names) for line in lines)


def test_the_contract_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = commands("sh", "lastword contract")
    assert [command.split()[2] for command in told] == ["export", "verify"]
    assert [lastword(*shlex.split(command)[1:]).status for command in told] == [0, 0]


def test_every_option_exists() -> None:
    """Of the commands that are not run here."""
    shown = {each: lastword("conformance", each, "--help", COLUMNS="200").out for each in ("client", "server")}
    for command in (*commands("sh", "lastword conformance"), *commands("yaml", "lastword conformance")):
        words = shlex.split(command)
        ours = words[3 : words.index("--")] if "--" in words else words[3:]
        assert [word for word in ours if word.startswith("--") and word not in shown[words[2]]] == []
    assert [option for option in re.findall(r"`(--[a-z-]+)", README) if option not in "".join(shown.values())] == []


def test_every_verdict_is_told_the_worst_first() -> None:
    assert re.findall(
        r"^\| `(\w+)` \| ", README.partition("| Verdict |")[2].partition("\n\n")[0], re.MULTILINE
    ) == list(Verdict)


def test_every_area_is_told() -> None:
    """Each area of each kind of vectors stands in a row of its kind, and no other does."""
    table = README.partition("| Kind | Area | Is about |\n| --- | --- | --- |\n")[2].partition("\n\n")[0]
    told: set[tuple[str, str]] = set()
    kind = ""
    for line in table.splitlines():
        first, areas, about = (cell.strip() for cell in line.strip("|").split("|"))
        kind = first or kind
        told |= {(kind, area) for area in re.findall(r"`([a-z-]+)`", areas)}
        assert about
    kinds = [path.name for path in (CONTRACT / "vectors").iterdir()]
    vectors: list[tuple[str, dict[str, Any]]] = [(each, vector) for each in kinds for vector in _contract.vectors(each)]
    assert told == {(each, vector["id"].partition("/")[0]) for each, vector in vectors}


def test_every_link_leads_to_a_file_that_is_copied_with_it() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert [target for target in targets if ".." in target or not (CONTRACT / target).exists()] == []


def test_no_line_is_too_long_to_read() -> None:
    wide = [line for line in README.splitlines() if len(line) > 150 and not line.startswith("|")]
    assert wide == []
