"""What a run reads and writes: whole or not at all, and nothing in the place of something else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.command import adapter, lastword

from lastword.conformance.show._files import check_writable, write

RUN = ("conformance", "client", "--run", "ending/no-done")
LIES = ("--", *adapter("lies"))


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path, link = tmp_path / "report.json", tmp_path / "link.json"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    with path.open() as reader:
        write(link, "new")
        assert reader.read() == "old"  # who reads it has the old one to its end
    assert path.read_text() == "new"
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(UnicodeEncodeError):
        write(path, "half\ud800")
    assert path.read_text() == "new"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.json", "report.json"]


def test_looking_whether_a_file_can_be_written_leaves_no_trace(tmp_path: Path) -> None:
    dangling = tmp_path / "link"
    dangling.symlink_to(tmp_path / "nowhere")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (dangling, pipe, tmp_path / "new", Path(os.devnull)):
        check_writable(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "pipe"]
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path)


def test_no_file_is_written_over_another(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    path.write_text("**  # all\n")
    for others in (("--junit", str(tmp_path / "." / "known.txt")), ("--expected-failures", str(path))):
        said = lastword(*RUN, "--report", str(path), *others, *LIES)
        assert said.status == 2
        assert said.err == f"lastword: {path} is given for two things; --report and --junit need a file each\n"
    assert path.read_text() == "**  # all\n"


def test_what_was_found_is_shown_though_it_cannot_be_written() -> None:
    said = lastword(*RUN, "--report", "/dev/full", *LIES)
    assert said.status == 2
    assert said.out.startswith("silent      ending/no-done")
    assert said.err == "lastword: /dev/full cannot be written: No space left on device\n"


@pytest.mark.parametrize(("option", "value"), [("--report", "x" * 300), ("--profile", ""), ("--profile", "deep")])
def test_a_path_that_is_none_is_one_sentence(option: str, value: str, tmp_path: Path) -> None:
    if value == "deep":
        value = str(tmp_path / "deep.json")
        Path(value).write_text("[" * 100_000)
    said = lastword(*RUN, option, value, *LIES)
    assert said.status == 2
    assert said.err.startswith("lastword: ")
    assert said.err.count("\n") == 1


def test_a_baseline_may_come_from_an_editor_that_marks_its_files(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    path.write_bytes(b"\xef\xbb\xbfending/no-done  # ours never send it\r\n")
    assert lastword(*RUN, "--expected-failures", str(path), *LIES).status == 0


def test_more_jobs_than_files_may_be_open_are_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lastword.cli", *RUN, "--jobs", "64", *LIES]
    limited = ["sh", "-c", 'ulimit -n 100; exec "$@"', "sh", *command]
    said = subprocess.run(limited, capture_output=True, text=True, check=False, timeout=30)
    assert said.returncode == 2
    assert said.stderr.startswith("lastword: --jobs 64 needs 1056 open files, and 100 are allowed")


def test_a_list_in_json_is_json_whatever_the_terminal_lacks() -> None:
    said = lastword("conformance", "list", "--json", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert said.status == 0
    assert said.out.isascii()
    assert len(json.loads(said.out)) > 100


def test_a_profile_that_asks_for_nothing_here_is_no_success(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"vectors": ["ending/whole"]}')
    said = lastword(*RUN, "--profile", str(path), *LIES)
    assert said.status == 2
    assert said.err == f"lastword: profile {path}: it requires none of the client cases that are to be played\n"
