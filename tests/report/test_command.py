"""`lastword report` as people run it: files, pipes, comparisons, exit statuses."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.report.conftest import Evenings, gone, poll, record, records, rejected, write

REPORT = [sys.executable, "-m", "lastword.cli", "report"]


def report(
    *arguments: Path | str, given: bytes | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*REPORT, *map(str, arguments)], input=given, capture_output=True, cwd=cwd, check=False, timeout=60
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def rows(text: str) -> dict[str, list[str]]:
    """The lines of a report by their names."""
    split = (re.split(r"  +", line.strip()) for line in text.splitlines())
    return {cells[0]: cells[1:] for cells in split}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "records.jsonl", record(), record(1), rejected(2), gone(3))


def test_the_account_of_a_file(path: Path) -> None:
    """A line for each number; 0: every line was read."""
    done = report(path)
    assert (done.returncode, done.stderr) == (0, "")
    told = rows(done.stdout)
    assert done.stdout.startswith(f"{path}: 4 attempts of 4 requests, 2026-01-01 18:00:00 – 18:00:04 UTC (4.0 s)\n")
    assert told["received"] == ["4"]
    assert told["rejected"] == ["1", "25.0 %"]
    assert told["completed"] == ["2", "66.7 %"]
    assert told["disconnected while generating"] == ["1", "33.3 %"]
    assert told["effective completion rate"] == ["66.7 %"]
    assert told["wasted: for clients that left"] == ["40", "33.3 %"]
    assert told["client_disconnected"] == ["cancelled", "1", "25.0 %"]
    assert "model" not in told


def test_with_a_line_for_each_model(path: Path) -> None:
    """If it is asked for."""
    assert rows(report(path, "--by-model").stdout)["m"][:4] == ["4", "1", "2", "1"]


def test_json_has_the_same_numbers(path: Path) -> None:
    """Under names that stay."""
    told = json.loads(report(path, "--json").stdout)
    assert told["received"] == told["read"] == 4
    assert (told["completed"], told["wasted_tokens"], told["codes"]["queue_overloaded"]) == (2, 40, 1)
    assert told["times_ms"]["queue"]["count"] == 3
    assert sum(told["timeline"]["ended"]["completed"]) == 2
    assert told["models"]["m"]["received"] == 4
    assert told["side"] == "server"


def test_polls_are_told_apart(path: Path, tmp_path: Path) -> None:
    """And change no other number."""
    polled = write(tmp_path / "polled.jsonl", *records(path), *(poll(number) for number in range(4, 9)))
    told, bare = rows(report(polled).stdout), rows(report(path).stdout)
    assert told.pop("besides, and not counted above: asked for no work") == ["5"]
    assert list(told.values()) == list(bare.values())
    as_json = json.loads(report(polled, "--json").stdout)
    assert (as_json["read"], as_json["received"], as_json["asked_for_no_work"]) == (9, 4, 5)


def test_before_and_after(evenings: Evenings, tmp_path: Path) -> None:
    """Side by side, with what changed; both sides' records joined."""
    page = tmp_path / "report.html"
    given: list[Path | str] = [
        evenings.after,
        evenings.after_clients,
        "--before",
        evenings.before,
        "--before",
        evenings.before_clients,
    ]
    done = report(*given, "--html", page)
    size = page.stat().st_size
    assert (done.returncode, done.stderr) == (0, f"lastword: wrote {page} ({size / 1024:,.0f} KiB)\n")
    told = rows(done.stdout)
    assert told["requests"] == ["80", "80", "="]
    assert told["effective completion rate"][2].startswith("+")
    assert told["wasted: for clients that left"][2].startswith("−")
    assert "generation_timeout  client_disconnected  no" in re.sub(r" {3,}", "  ", done.stdout)
    both = json.loads(report(*given, "--json").stdout)
    assert both["before"]["wasted_tokens"] > both["after"]["wasted_tokens"]
    assert sum(each["attempts"] for each in both["after"]["both_sides"]) > both["after"]["received"] * 0.8
    assert size > 10_000


def test_rotated_and_compressed_files_by_a_pattern_that_no_shell_has_filled_in(tmp_path: Path) -> None:
    """As those of an option are not."""
    write(tmp_path / "a.jsonl", record(2))
    write(tmp_path / "a.jsonl.1", record(1))
    (tmp_path / "a.jsonl.2.gz").write_bytes(gzip.compress(json.dumps(record()).encode()))
    write(tmp_path / "b.jsonl", record(3))
    done = report("b.jsonl", "--before", "a.jsonl*", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["before"]["received"] == 3


def test_a_pattern_that_the_shell_has_filled_in_behind_before_is_noticed(tmp_path: Path) -> None:
    """It would count the rest as after."""
    for suffix in ("", ".1"):
        write(tmp_path / f"a.jsonl{suffix}", record())
    done = report("b.jsonl", "--before", "a.jsonl", "a.jsonl.1", cwd=write(tmp_path / "b.jsonl", record()).parent)
    assert done.returncode == 2
    assert done.stderr == (
        "lastword: a.jsonl.1 belongs to the files of --before: put their pattern in quotes, --before 'a.jsonl*'\n"
    )


def test_lines_that_are_no_records_are_told_on_stderr(tmp_path: Path) -> None:
    """1: there is an account, but not of everything."""
    path = write(tmp_path / "a.jsonl", record(), '{"request_id": "to')
    done = report(path)
    assert done.returncode == 1
    assert rows(done.stdout)["received"] == ["1"]
    assert "lastword: 1 line is no record and not counted:" in done.stderr
    assert f"{path}:2: no JSON" in done.stderr


def test_a_file_beside_its_compressed_copy_is_counted_once(path: Path) -> None:
    """And that is said; 0, for everything was read."""
    packed = Path(f"{path}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    done = report(packed, path)
    assert (done.returncode, done.stderr) == (0, "lastword: 4 records were there already and not counted again\n")
    assert rows(done.stdout)["received"] == ["4"]
    assert json.loads(report(packed, path, "--json").stdout)["repeated"] == 4


def test_what_a_broken_line_holds_cannot_work_the_terminal(tmp_path: Path) -> None:
    """It is shown as text."""
    path = write(tmp_path / "a.jsonl", {**record(), "model": "\x1b[2J\u202emodel"}, '{"received_at": "\x1b[2J"}')
    done = report(path, "--by-model")
    assert "\x1b" not in done.stdout + done.stderr
    assert r"\x1b[2J\u202emodel" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "RECORDS is missing"),
        (["none.jsonl"], "none.jsonl: no such file"),
        (["empty.jsonl"], "no record of work in empty.jsonl"),
        (["polls.jsonl"], "no record of work in polls.jsonl; 1 of requests that asked for none"),
        (["."], "no record of work in ."),
        (["a.jsonl", "--since", "soon"], "--since 'soon' is no time: 2026-01-01T18:00"),
        (["a.jsonl", "--since", "2027-01-01"], "no record of work in a.jsonl of that time; 1 of other times"),
        (["a.jsonl", "--html", "a.jsonl"], "--html a.jsonl would take the place of the records"),
        (["a.jsonl", "--html", "no/r.html"], "cannot be written: No such file or directory"),
        (["-", "--before", "-"], "standard input can be read once only"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, arguments: list[str], said: str) -> None:
    """2: there is no account."""
    write(tmp_path / "a.jsonl", record())
    write(tmp_path / "empty.jsonl")
    write(tmp_path / "polls.jsonl", poll())
    done = report(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_standard_input_and_a_period(path: Path) -> None:
    """`cat records.jsonl | lastword report - --since …`."""
    done = report("-", "--since", "2026-01-01T18:00:01", "--until", "2026-01-01T18:00:03Z", given=path.read_bytes())
    assert done.stdout.startswith("standard input: 2 attempts of 2 requests, ")
    assert "; 2 of other times left out\n" in done.stdout
    assert report("-", "--since", "90m ago", given=path.read_bytes()).returncode == 2


def test_a_standard_input_that_is_closed_is_said() -> None:
    """As under a supervisor."""
    argv = ["sh", "-c", 'exec "$@" <&-', "sh", *REPORT, "-"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "lastword: not read: standard input: it is closed",
        "lastword: no record of work in standard input",
    ]


def test_a_pipe_with_a_name(path: Path) -> None:
    """`lastword report <(zcat records.jsonl.*.gz)`."""
    reader, sink = os.pipe()
    os.write(sink, path.read_bytes())
    os.close(sink)
    argv = [*REPORT, f"/dev/fd/{reader}"]
    done = subprocess.run(argv, pass_fds=[reader], capture_output=True, text=True, check=False, timeout=60)
    os.close(reader)
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(done.stdout)["received"] == ["4"]


def test_older_files_that_were_not_named_are_a_note(path: Path) -> None:
    """They may be left out on purpose."""
    write(Path(f"{path}.1"), record(9))
    done = report(path)
    assert done.returncode == 0
    assert done.stderr == f"lastword: note: older records are in {path}.1, which were not asked for\n"
    assert report(f"{path}.1", path).stderr == ""


def test_help_teaches_it() -> None:
    """Without a terminal of any width."""
    done = subprocess.run(
        [*REPORT, "--help"], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "120"}
    )
    for word in ("LASTWORD_RECORDS", "--before", "--since", "--html", "records.jsonl*", "Exit status"):
        assert word in done.stdout


def test_a_terminal_gets_a_table_and_is_not_overrun(path: Path) -> None:
    """At 60 columns."""
    code = f"import pty, sys; sys.exit(pty.spawn({[*REPORT, str(path), '--by-model']!r}) >> 8)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        timeout=30,
        env={**os.environ, "COLUMNS": "60", "TERM": "xterm"},
    )
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", done.stdout.decode())
    assert "effective completion rate" in plain
    assert max(len(line.rstrip()) for line in plain.splitlines() if "attempts of" not in line) <= 60


def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    """Thirty thousand lines and a limit that they would not fit into as they are."""
    path = tmp_path / "records.jsonl"
    with path.open("w", encoding="utf-8") as file:
        line = json.dumps(record())
        for number in range(30_000):
            file.write(line.replace("req-0", f"req-{number}") + "\n")
    measure = (
        "import resource, sys; from lastword.cli import main; sys.argv = ['lastword', 'report', sys.argv[1]]\n"
        "try: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    # Through a shell that forks, for the kernel counts what a process was before it became another program.
    argv = ["sh", "-c", '"$@"; exit', "sh", sys.executable, "-c", measure, str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert rows(done.stdout)["received"] == ["30,000"]
    assert int(done.stderr) < 120_000, "KiB"
    assert path.stat().st_size > 20_000_000
