"""What the README says of the suite: its adapter runs, and its commands do what is said of them, one after the other."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.command import Said, cases, lastword

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADAPTERS = ROOT / "tests/conformance/adapters"
MINE = "tests/conformance/adapters/my_client.py"


def commands(title: str) -> list[str]:
    """The shell's lines under a heading, without their comments."""
    section = README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [
        line.partition("  #")[0].strip() if "sed" not in line else line for text in blocks for line in text.splitlines()
    ]


def words(command: str) -> list[str]:
    """A command's words after ``lastword``, for this interpreter."""
    first, *rest = shlex.split(command)
    assert first == "venv/bin/lastword"
    ours = {"venv/bin/python": [sys.executable], "venv/bin/lastword": [sys.executable, "-m", "lastword.cli"]}
    return [part for word in rest for part in ours.get(word, [word])]


CLIENT = commands("How does my client behave?")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place like the root of a clone, with the README's adapter among what the others share."""
    (adapter,) = re.findall(
        r"test_readme_suite\.py runs it -->\n```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL
    )
    (tmp_path / MINE).parent.mkdir(parents=True)
    (tmp_path / MINE).write_text(adapter, encoding="utf-8")
    for name in ("protocol.py", "codes.py"):
        (tmp_path / MINE).with_name(name).symlink_to(ADAPTERS / name)
    (tmp_path / "contract").symlink_to(ROOT / "contract")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play(command: str, *options: str) -> Said:
    arguments = words(command)
    return lastword(*arguments[:2], *options, *arguments[2:])


def test_the_first_command_runs_an_adapter_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = play(CLIENT[1], "--run", "ending/*")
    assert (done.status, done.err) == (1, "")
    assert "\nsilent      ending/no-finish-no-done" in f"\n{done.out}"


def test_the_adapter_shows_what_its_client_misses(project: Path) -> None:
    done = play(CLIENT[2], "--report", "report.json")
    verdicts = {name: each["verdict"] for name, each in cases(project / "report.json").items()}
    assert (done.status, done.err) == (1, "")
    assert [verdicts[f"ending/{name}"] for name in ("whole", "cut-chunked", "no-finish-no-done", "half-event", "stall")] == [
        "right", "right", "silent", "silent", "skipped"
    ]  # fmt: skip


def test_the_adapter_answers_every_case(project: Path) -> None:
    play(CLIENT[4].replace(" --expected-failures known.txt", ""), "--report", "report.json")
    verdicts = {each["verdict"] for each in cases(project / "report.json").values()}
    assert verdicts & {"hang", "crash", "unable"} == set()


def test_the_baseline_that_is_made_holds(project: Path) -> None:
    listing, _, making = CLIENT[3].partition(" | ")
    listed = play(listing, "--run", "ending/*")
    assert (listed.status, listed.err) == (1, "")
    made = subprocess.run(
        ["sh", "-c", making], input=listed.out, text=True, check=True, cwd=project, capture_output=True
    )
    assert (made.stdout, made.stderr) == ("", "")
    assert "ending/no-done  # silent\n" in (project / "known.txt").read_text()
    assert play(CLIENT[4], "--run", "ending/*").status == 0
    with (project / "known.txt").open("a") as known:
        known.write("ending/whole  # it is not\n")
    assert play(CLIENT[4], "--run", "ending/*").status == 1


def test_the_server_command_finds_the_engine_of_the_first_steps() -> None:
    command, *_ = commands("How does my server behave?")
    start = [sys.executable, "-m", "lastword_shim.engine.embedded", "--port", "0"]
    with subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as engine:
        try:
            assert engine.stdout is not None
            address = engine.stdout.readline().removeprefix("ready ").strip()
            assert command.count("http://127.0.0.1:8000/v1") == 1
            done = play(command.replace("http://127.0.0.1:8000/v1", address), "--run", "good/*")
        finally:
            engine.terminate()
    assert done.status == 0, done.out + done.err
    assert "All right." in done.out


def test_a_relay_and_the_sidecar_show_what_the_shim_mends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    _, bare, mended = commands("How does my server behave?")
    broken = play(bare, "--run", "broken-stream/no-*")
    assert (broken.status, broken.err) == (1, "")
    assert "silent      broken-stream/no-finish" in broken.out
    right = play(mended, "--run", "broken-stream/no-*")
    assert right.status == 0, right.out + right.err
