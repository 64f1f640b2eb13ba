"""The demo as a user runs it: its result, its exit, and what it leaves behind (nothing)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from lastword.demo.__main__ import BEGIN, END, _write_markdown, main, summary
from lastword.demo.__main__ import words as words_of
from lastword.demo._endings import BY_CHOICE, Report, Row
from lastword.demo._screen import Screen
from lastword.demo._servers import DemoError, engine

COMMAND = [sys.executable, "-W", "error", "-m", "lastword.demo"]


def processes_with(mark: str) -> list[str]:
    """Process ids that have inherited a variable with this value."""
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in each.read_bytes():
                found.append(each.parent.name)
        except OSError:  # gone, or not ours
            continue
    return found


def gone(mark: str, *, seconds: float = 8.0) -> bool:
    until = time.monotonic() + seconds
    while processes_with(mark):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def mark() -> str:
    return f"lastword-demo-test-{uuid.uuid4()}"


def test_it_runs_to_its_end_and_leaves_nothing(mark: str) -> None:
    run = subprocess.run(
        [*COMMAND, "--json"], env={**os.environ, "MARK": mark}, capture_output=True, text=True, timeout=50, check=False
    )
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert len(result["endings"]) == 11
    broken = [row["reports"] for row in result["endings"] if row["broken"]]
    assert len(broken) == 10
    assert sum(reports["lastword"]["complete"] for reports in broken) == 0
    assert sum(reports["stock"]["complete"] for reports in broken) >= 5
    assert [row["reports"]["openai, behind shim"]["complete"] for row in result["faults"]] == [False] * 6
    assert "last word: completed" in run.stderr
    assert processes_with(mark) == []


@pytest.mark.parametrize(
    ("end", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_however_it_is_ended_nothing_is_left(mark: str, end: signal.Signals, status: int) -> None:
    with subprocess.Popen(COMMAND, env={**os.environ, "MARK": mark}, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        demo.stdout.readline()  # the engine is up and the stream is about to begin
        demo.send_signal(end)
        demo.stdout.read()
        assert demo.wait(10) == status
    assert gone(mark)


def test_a_server_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "")  # the demo sets both
    monkeypatch.setenv("no_proxy", "")
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["--base-url", "http://127.0.0.1:9/v1"]) == 2
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "connection_failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--base-url", "notaurl"], "demo: base_url='notaurl': give a URL such as http"),
        (["--markdown", "no-such-page.md"], "demo: no-such-page.md cannot be read"),
        (["--markdown", "pyproject.toml"], "demo: pyproject.toml needs the two lines"),
    ],
)
def test_what_cannot_work_is_said_at_once(options: list[str], said: str) -> None:
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run([*COMMAND, *options], cwd=root, capture_output=True, text=True, timeout=50, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(said)
    assert "Traceback" not in run.stderr


def test_a_reader_that_leaves_ends_it_without_a_word(mark: str) -> None:
    with subprocess.Popen(
        COMMAND, env={**os.environ, "MARK": mark}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.readline()
        demo.stdout.close()
        assert demo.wait(20) == 128 + signal.SIGPIPE
        assert demo.stderr.read() == b""
    assert gone(mark)


def test_what_is_broken_by_choice_only_is_counted_apart() -> None:
    complete, noticed = Report("", complete=True), Report("", complete=False)
    rows = [
        Row(name, name, broken=name != "whole", reports={"stock": stock, "lastword": ours})
        for name, stock, ours in [
            ("whole", complete, complete),
            (BY_CHOICE, complete, noticed),
            ("cut", complete, noticed),
            ("reset", noticed, noticed),
        ]
    ]
    start = "Reported as complete, of 3 broken endings: openai 1, "
    assert summary("openai", rows) == f"{start}and 1 by the contract's choice (1); lastword 0."


def test_it_streams_from_an_engine_of_the_callers_behind_the_sidecar(mark: str) -> None:
    """Any that says `ready URL`; the model is the one that it lists."""
    command = f"{sys.executable} -m lastword_shim.engine.embedded --bare --pace 0.001 --port 0"
    run = subprocess.run(
        [*COMMAND, "--engine", command, "--engine-name", "my engine"],
        env={**os.environ, "MARK": mark}, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "from my engine behind" in run.stdout.splitlines()[0]
    assert "last word: completed, finish_reason length" in run.stdout
    assert processes_with(mark) == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("no-such-program", "the engine cannot be started: no-such-program: No such file or directory"),
        ("false", "the engine did not start: it said nothing"),
        (f"{sys.executable} -c 'print(1)'", "the engine did not start: it said nothing"),
    ],
)
def test_where_that_engine_does_not_start_another_one_speaks(
    command: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And it is said."""
    screen = Screen(sys.stdout, width=200)
    with words_of(screen, command, "my engine") as (url, what):
        assert (url.startswith("http://127.0.0.1:"), what) == (
            True,
            "the embedded engine behind `lastword shim`",
        )
    said = capsys.readouterr().out
    assert words in said
    assert "The embedded engine, which has no model, speaks in its place." in said


def test_an_engine_that_does_not_start_says_why() -> None:
    with pytest.raises(DemoError, match="unrecognized arguments: --nonsense"), engine("--nonsense"):
        pass


def test_the_table_goes_between_the_markers(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"a\n{BEGIN}\nold\n{END}\nb\n", encoding="utf-8")
    _write_markdown(str(file), "new\n")
    assert file.read_text(encoding="utf-8") == f"a\n{BEGIN}\nnew\n{END}\nb\n"


def test_a_page_without_markers_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("a\n", encoding="utf-8")
    with pytest.raises(DemoError, match="once each"):
        _write_markdown(str(file), "new\n")
    assert file.read_text(encoding="utf-8") == "a\n"


@pytest.mark.parametrize(
    ("broken", "complete", "silent"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_silent_means_broken_and_reported_complete(broken: bool, complete: bool, silent: bool) -> None:
    assert Row("x", "x", broken, {"c": Report("", complete)}).silent("c") is silent


def test_it_streams_from_a_server_of_the_callers() -> None:
    with engine("--bare", "--pace", "0.001") as url:
        assert (
            subprocess.run([*COMMAND, "--base-url", url], stdout=subprocess.DEVNULL, timeout=50, check=False).returncode
            == 0
        )
