"""``lastword conformance`` in a process of its own: what it refuses, what it exits with, how it ends when interrupted."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conformance.command import adapter, cases, lastword, started

CLIENT = ("conformance", "client")
LIES = ("--", *adapter("lies"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "CMD is missing: lastword conformance client [OPTIONS] -- python my_adapter.py"),
        (("--run", "endings/*", *LIES), "'endings/*' names no client case: "),
        (("--run", "ending/whol", *LIES), "did you mean ending/whole?"),
        (("--run", "endings/*", *LIES), "did you mean ending/*?"),
        (("--expected-failures", "{tmp}/bad.txt", *LIES), "{tmp}/bad.txt:2: ending/reset has no reason"),
        (("--expected-failures", "{tmp}/none.txt", *LIES), "{tmp}/none.txt: cannot be read"),
        (("--profile", "9.9", *LIES), "profile 9.9: neither a file nor a profile of the contract"),
        (("--profile", "{tmp}/profile.json", *LIES), "profile {tmp}/profile.json: unknown vectors: ending/made-up"),
        (("--report", "{tmp}/no/r.json", *LIES), "{tmp}/no/r.json cannot be written: No such file or directory"),
        (("--junit", "{tmp}", *LIES), "{tmp} cannot be written: Is a directory"),
        (("--segmentation", "3", *LIES), "segmentation '3' is not one of listed, all, event, whole, 1, 7"),
        (
            ("--", "no-such-command-anywhere"),
            "cannot start no-such-command-anywhere: No such file or directory: is it on the",
        ),
        (("--", "{tmp}/no/adapter"), "cannot start {tmp}/no/adapter: No such file or directory: is the path right"),
        (("--", "{tmp}/bad.txt"), "cannot start {tmp}/bad.txt: Permission denied: is it executable?"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("ending/no-done  # fine\nending/reset\n", encoding="utf-8")
    (tmp_path / "profile.json").write_text('{"vectors": ["ending/made-up"]}', encoding="utf-8")
    said = lastword(*CLIENT, *(each.replace("{tmp}", str(tmp_path)) for each in arguments))
    assert said.status == 2
    assert said.err.startswith("lastword: ")
    assert words.replace("{tmp}", str(tmp_path)) in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


@pytest.mark.parametrize("arguments", [("--jobs", "0", *LIES), ("--jbos", "2", *LIES)])
def test_bad_options_exit_with_2(arguments: tuple[str, ...]) -> None:
    said = lastword(*CLIENT, *arguments)
    assert said.status == 2
    assert arguments[0] in said.err


@pytest.mark.parametrize("kind", ["client", "server"])
@pytest.mark.parametrize(
    "command", [("python", "-c", "a = 1"), ("my-adapter", "--report", "r.json"), ("python", "-v", "x")]
)
def test_options_behind_a_command_need_two_dashes(kind: str, command: tuple[str, ...]) -> None:
    said = lastword("conformance", kind, "--run", "ending/whole", *command, COLUMNS="300")
    assert said.status == 2
    assert f"Whose option is {command[1]}? Put -- before the command" in said.err
    assert f" conformance {kind} [OPTIONS] -- {shlex.join(command)}" in said.err


def test_known_failures_pass_and_stale_lines_fail(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("ending/no-*  # it lies\n", encoding="utf-8")
    selected = (*CLIENT, "--run", "ending/no-*", "--run", "ending/whole", "--expected-failures", str(known))
    said = lastword(*selected, *LIES)
    assert said.status == 0, said
    known.write_text("ending/no-*  # it lies\nending/whole  # long ago\nwire/*  # left out\n", encoding="utf-8")
    said = lastword(*selected, *LIES)
    assert said.status == 1
    assert f"{known}:2: ending/whole  # long ago" in said.out
    assert "wire/" not in said.out


def test_a_profile_decides_what_counts(tmp_path: Path) -> None:
    profile = tmp_path / "mine.json"
    profile.write_text('{"vectors": ["ending/whole"]}', encoding="utf-8")
    said = lastword(*CLIENT, "--run", "ending/no-*", "--run", "ending/whole", "--profile", str(profile), *LIES)
    assert said.status == 0, said
    assert "profile mine" in said.out


def test_two_runs_say_and_report_the_same(tmp_path: Path) -> None:
    reports = [tmp_path / "1.json", tmp_path / "2.json"]
    runs = [lastword(*CLIENT, "--run", "ending/*", "--run", "body/*", "--report", str(path), *LIES) for path in reports]
    assert [each.status for each in runs] == [1, 1]
    assert reports[0].read_bytes() == reports[1].read_bytes()
    without_times = [re.sub(r"\(\d+ ms", "(", each.out) for each in runs]
    assert without_times[0] == without_times[1]
    assert "\x1b" not in runs[0].out
    lied = cases(reports[0])["ending/no-finish-no-done"]
    assert lied["said"] == {"outcome": "completed", "code": None, "text": "Hello"}
    assert lied["wire"][-1] == "the last chunk"


def test_a_run_of_skips_only_is_no_success() -> None:
    """The sentence says what would have to be declared."""
    said = lastword(*CLIENT, "--run", "ending/stall", *LIES)
    assert said.status == 2
    assert "Nothing was played: every case was skipped." in said.out
    assert "nothing was played: every case needs what is not declared: idle: let the adapter declare" in said.err


def test_quiet_says_what_fails_and_no_more() -> None:
    said = lastword(*CLIENT, "-q", "--run", "ending/whole", "--run", "ending/no-done", *LIES)
    assert (said.status, said.out) == (1, "ending/no-done: silent\n")


def test_trace_shows_the_wire_with_times() -> None:
    said = lastword(*CLIENT, "--trace", "--run", "ending/no-done", *LIES)
    assert re.search(r"\d+ ms {2}> POST /v1/chat/completions HTTP/1.1 \{", said.out)
    assert re.search(r"\d+ ms {2}< end: complete", said.out)


def test_a_terminal_without_the_characters_gets_their_numbers() -> None:
    said = lastword(*CLIENT, "--trace", "--run", "ending/no-done", *LIES, PYTHONIOENCODING="ascii")
    assert said.status == 1, said
    assert "\\u23ce" in said.out
    assert "Traceback" not in said.err


# -- the ends


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing(number: signal.Signals, status: int, tmp_path: Path) -> None:
    """Adapters that are in the middle of a case, and their children, end with the run."""
    report, noted = tmp_path / "report.json", tmp_path / "hangs"
    selected = ("--run", "inband/*", "--jobs", "3", "--report", str(report))
    with started(*CLIENT, *selected, "--", *adapter("hangs"), HANGING=str(noted)) as process:
        until = time.monotonic() + 30
        while len(list(tmp_path.glob("hangs.*"))) < 3:
            assert time.monotonic() < until, "the run did not get so far"
            time.sleep(0.02)
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (status, "", "lastword: interrupted\n")
    assert not report.exists()


@pytest.mark.parametrize("quiet", [False, True])
def test_what_was_played_before_an_interruption_is_shown(quiet: bool, tmp_path: Path) -> None:
    """What was not played fails nobody, and that an adapter was killed is no crash of it."""
    report, noted, known = tmp_path / "report.json", tmp_path / "played", tmp_path / "known.txt"
    known.write_text("wire/*  # not played yet\n", encoding="utf-8")
    options = (
        "--run",
        "inband/*",
        "--jobs",
        "2",
        "--report",
        str(report),
        "--expected-failures",
        str(known),
        *["-q"] * quiet,
    )
    with started(*CLIENT, *options, "--", *adapter("tires"), TIRED=str(noted)) as process:
        until = time.monotonic() + 30
        while len(list(tmp_path.glob("played.*"))) < 2:
            assert time.monotonic() < until, "the run did not get so far"
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (130, "lastword: interrupted\n")
    assert not report.exists()
    assert "crash" not in out
    assert "stale" not in out
    if quiet:
        assert "silent" in out
        assert all(re.fullmatch(r"\S+: [a-z_]+", line) for line in out.splitlines())
    else:
        assert re.search(r"^silent +inband/", out, re.MULTILINE)
        assert re.search(r"\nInterrupted after \d+ of \d+ cases; no report was written\.\n$", out)


def test_on_a_terminal_of_60_columns_nothing_is_wider() -> None:
    """A live display, a table and notes, as somebody sees them; and no colour for who wants none."""
    for given in ({"COLUMNS": "60"}, {"COLUMNS": "60", "NO_COLOR": "1"}):
        shown = on_terminal("--run", "ending/no-*", "--run", "ending/whole", *LIES, **given)
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
        assert "silent" in plain
        assert [line for line in re.split(r"[\r\n]+", plain) if len(line) > 60] == []
        colours = re.findall(r"\x1b\[[0-9;]*3[0-7]m", shown)
        assert bool(colours) == ("NO_COLOR" not in given)


def on_terminal(*arguments: str, **environment: str) -> str:
    """What the command shows on a terminal of its own."""
    child, screen = pty.fork()
    if child == 0:
        os.environ.update({"TERM": "xterm-256color", **environment})
        os.environ.pop("CI", None)
        os.execv(sys.executable, [sys.executable, "-m", "lastword.cli", *CLIENT, *arguments])
    shown = b""
    try:
        while data := os.read(screen, 65_536):
            shown += data
    except OSError:  # Linux: the other end of the terminal is closed
        pass
    finally:
        os.close(screen)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1, shown
    return shown.decode()


# -- list


def test_list_names_every_vector_with_its_sentence() -> None:
    said = lastword("conformance", "list", "--json", "--kind", "client", "ending/*")
    listed = {each["id"]: each for each in json.loads(said.out)}
    assert said.status == 0
    assert listed["ending/stall"]["needs"] == ["idle"]
    assert listed["ending/whole"]["segmentations"] == ["event", "1"]
    rows = lastword("conformance", "list", "--requirements", "ending/no-done").out.splitlines()
    assert rows == [f"client\tending/no-done\tSTR-4\t{listed['ending/no-done']['description']}"]
    kinds = {line.partition("\t")[0] for line in lastword("conformance", "list").out.splitlines()}
    assert {"client", "decode", "retry"} <= kinds


def test_list_refuses_a_pattern_that_names_nothing() -> None:
    for arguments, hint in (
        (
            ("endings/*", "--kind", "client"),
            "did you mean ending/*? `lastword conformance list --kind client` shows them all",
        ),
        (("ending/whol",), "did you mean ending/whole? `lastword conformance list` shows them all"),
        (("nope/*",), "`lastword conformance list` shows them all"),
    ):
        said = lastword("conformance", "list", *arguments)
        assert (said.status, said.err) == (2, f"lastword: no vector is named by '{arguments[0]}': {hint}\n")


# -- the frame


@pytest.mark.parametrize(
    "arguments", [(), ("conformance",), ("conformance", "client"), ("conformance", "list")], ids=" ".join
)
def test_help_fits_60_columns_and_says_what_there_is(arguments: tuple[str, ...]) -> None:
    said = lastword(*arguments, "--help", COLUMNS="60")
    assert said.status == 0
    assert max(map(len, said.out.splitlines())) <= 60
    typed = [line for line in said.out.splitlines() if "<bool>" in line or "range>" in line]
    assert [line for line in typed if "--help" not in line and "-completion" not in line] == []  # those are typer's own
    if arguments == CLIENT:
        assert "lastword conformance client --run 'ending/*'" in " ".join(said.out.split())
        assert all(f"--{name}" in said.out for name in ("expected-failures", "segmentation", "junit", "trace"))


@pytest.mark.parametrize(
    ("arguments", "missing", "extra"),
    [
        (("contract", "export", "nowhere"), "typer", "cli"),
        (("shim", "--upstream", "http://127.0.0.1:9"), "typer", "sidecar"),
        ((*CLIENT, *LIES), "typer", "conformance"),
        ((*CLIENT, *LIES), "rich", "conformance"),
        ((*CLIENT, "--run", "ending/whole", *LIES), "jsonschema", "conformance"),
    ],
)
def test_a_missing_extra_is_named_in_a_sentence(arguments: tuple[str, ...], missing: str, extra: str) -> None:
    """Once, and the one that suffices."""
    code = f"import sys; sys.modules[{missing!r}] = None; from lastword.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr == f"lastword: this needs {missing}: pip install '.[{extra}]' in a clone of lastword\n"
