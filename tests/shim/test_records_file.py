"""Where records go: files that are full, moved or gone, and directories that are away for a while."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.shim.lines import Dropped, counts, line, until

from lastword_shim.account.sink import FileSink
from lastword_shim.account.writer import Writer


@pytest.fixture
def dropped() -> Dropped:
    return Dropped()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


@pytest.fixture
def writer(path: Path, dropped: Dropped) -> Iterator[Writer]:
    made = Writer(FileSink(str(path)), dropped)
    yield made
    made.close(5)


def test_lines_are_written_at_once_and_in_order(writer: Writer, path: Path) -> None:
    """Nobody has to ask for it."""
    for count in range(1000):
        writer.put(line(count))
    until(lambda: writer.idle, "idle writer")
    assert counts(path) == list(range(1000))


def test_a_file_is_set_aside_before_it_is_too_large_and_the_oldest_is_deleted(path: Path, dropped: Dropped) -> None:
    """Also those that an earlier setting kept; and a line that is larger by itself has a file to itself."""
    for number in (1, 2, 3, 4):
        Path(f"{path}.{number}").write_bytes(line(-number))
    writer = Writer(FileSink(str(path), max_bytes=1000, keep=2), dropped)
    for count in range(50):
        writer.put(line(count))
    until(lambda: writer.idle, "idle writer")
    writer.put(line(50, size=3000))
    writer.put(line(51))
    writer.close()
    assert sorted(each.name for each in path.parent.iterdir()) == [
        "records.jsonl",
        "records.jsonl.1",
        "records.jsonl.2",
    ]
    assert counts(path) == [51]
    assert counts(Path(f"{path}.1")) == [50]
    assert counts(Path(f"{path}.2"))[-1] == 49
    assert Path(f"{path}.2").stat().st_size <= 1000
    assert dropped.number == 0


@pytest.mark.parametrize("keep", [1, 3])
@pytest.mark.parametrize("number", [1, 2])
def test_a_directory_in_the_place_of_one_that_is_set_aside_costs_no_record(
    path: Path, dropped: Dropped, caplog: pytest.LogCaptureFixture, keep: int, number: int
) -> None:
    """The file grows on; that is said once, and counted at each further bound.  No file is moved, and no directory."""
    folder = Path(f"{path}.{number}")
    folder.mkdir()
    other = Path(f"{path}.{3 - number}")
    other.write_bytes(line(-1))
    stuck: list[int] = []
    writer = Writer(FileSink(str(path), max_bytes=1000, keep=keep, on_stuck=lambda: stuck.append(1)), dropped)
    with caplog.at_level(logging.WARNING, "lastword_shim"):
        for count in range(50):
            writer.put(line(count, size=3000 if count == 9 else 100))
            until(lambda: writer.idle, "idle writer")
        if number > keep:  # it is in nobody's way
            assert (stuck, caplog.records, counts(path)[-1]) == ([], [], 49)
            writer.close()
            return
        assert counts(path) == list(range(50))
        assert counts(other) == [-1]
        assert 4 <= len(stuck) <= 10
        (word,) = [record.getMessage() for record in caplog.records]
        assert word == (
            f"the file of lifecycle records cannot be set aside: records.jsonl.{number} is a directory; "
            "it grows on beyond its bound"
        )
        folder.rmdir()
        for count in range(50, 80):
            writer.put(line(count))
        writer.close()
    assert counts(path)[-1] == 79
    assert path.stat().st_size <= 1000
    assert caplog.records[-1].getMessage() == "the file of lifecycle records is set aside again"
    assert dropped.number == 0


def test_a_directory_that_must_not_be_written_to_costs_no_record(
    path: Path, dropped: Dropped, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The file itself may be."""

    def refuses(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", refuses)
    writer = Writer(FileSink(str(path), max_bytes=1000, keep=1), dropped)
    for count in range(50):
        writer.put(line(count))
    writer.close()
    assert counts(path) == list(range(50))
    assert [record.getMessage() for record in caplog.records] == [
        "the file of lifecycle records cannot be set aside: Permission denied; it grows on beyond its bound"
    ]


def test_with_none_to_keep_the_disk_is_bounded_all_the_same(path: Path, dropped: Dropped) -> None:
    """One file, never larger."""
    writer = Writer(FileSink(str(path), max_bytes=1000, keep=0), dropped)
    for count in range(50):
        writer.put(line(count))
    writer.close()
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_size <= 1000
    assert counts(path)[-1] == 49


@pytest.mark.parametrize("what", ["moved", "removed", "replaced"])
def test_a_file_that_somebody_takes_away_is_begun_anew(writer: Writer, path: Path, what: str) -> None:
    """As logrotate does, and people."""
    writer.put(line(0))
    until(lambda: writer.idle, "idle writer")
    if what == "removed":
        path.unlink()
    else:
        path.rename(path.with_suffix(".old"))
    if what == "replaced":
        path.write_bytes(line(1))
    writer.put(line(2))
    until(lambda: writer.idle, "idle writer")
    assert counts(path) == ([1, 2] if what == "replaced" else [2])


def test_a_link_to_the_file_stays_where_it_is(path: Path, dropped: Dropped, tmp_path: Path) -> None:
    """What is set aside is the file; the next one is begun where the link leads."""
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    writer = Writer(FileSink(str(link), max_bytes=1000, keep=2), dropped)
    for count in range(50):
        writer.put(line(count))
    writer.close()
    assert link.readlink() == path
    assert counts(path)[-1] == 49
    assert counts(Path(f"{path}.1"))[-1] == counts(path)[0] - 1


def test_the_name_of_an_open_file_is_not_changed(path: Path, dropped: Dropped, tmp_path: Path) -> None:
    """`/dev/stdout` is a link to it, which one who may do anything would take away from all others."""
    with path.open("wb") as file:
        link = tmp_path / "stdout"
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        writer = Writer(FileSink(str(link), max_bytes=1000, keep=2), dropped)
        for count in range(50):
            writer.put(line(count))
        writer.close()
    assert link.is_symlink()
    assert counts(path) == list(range(50))
    assert not list(path.parent.glob("*.1"))


def test_half_a_line_of_one_that_was_killed_does_not_spoil_the_next(writer: Writer, path: Path) -> None:
    """It becomes a line of its own."""
    path.write_bytes(line(0) + b'{"count": 1, "pa')
    writer.put(line(2))
    until(lambda: writer.idle, "idle writer")
    assert path.read_bytes() == line(0) + b'{"count": 1, "pa\n' + line(2)


def test_a_directory_that_is_away_for_a_while_costs_nothing(
    tmp_path: Path, dropped: Dropped, caplog: pytest.LogCaptureFixture
) -> None:
    """The lines wait in memory; it is said once that they do, and once that they need not any more."""
    folder = tmp_path / "gone"
    writer = Writer(FileSink(str(folder / "records.jsonl")), dropped)
    with caplog.at_level(logging.WARNING, "lastword_shim"):
        writer.put(line(0))
        until(lambda: caplog.records, "word in the log")
        writer.put(line(1))
        folder.mkdir()
        until(lambda: writer.idle, "idle writer")
        writer.close()
    assert counts(folder / "records.jsonl") == [0, 1]
    assert dropped.number == 0
    assert [record.getMessage() for record in caplog.records] == [
        "lifecycle records cannot be written: No such file or directory; some are kept in memory until they can",
        "lifecycle records are written again; 0 were dropped meanwhile",
    ]


def test_a_full_disk_drops_what_memory_cannot_hold_and_leaves_whole_lines(
    dropped: Dropped, caplog: pytest.LogCaptureFixture, full_disk: Path
) -> None:
    """Counted and told once; it goes on as soon as there is room again."""
    path = full_disk / "records.jsonl"
    writer = Writer(FileSink(str(path)), dropped, most_bytes=20_000)
    with caplog.at_level(logging.WARNING, "lastword_shim"):
        full = 0
        while not caplog.records:
            writer.put(line(full, 2000))
            full += 1
            until(lambda: writer.idle or caplog.records, "idle writer")
        for count in range(full, 200 + full):
            writer.put(line(count, 2000))
        assert dropped.number > 100
        written = counts(path)
        assert written == list(range(len(written)))
        lost = dropped.number
        (full_disk / "ballast").unlink()
        until(lambda: writer.idle, "idle writer")
        writer.put(line(-1))
        writer.close()
    assert len(counts(path)) == full + 200 - lost + 1
    assert counts(path)[-1] == -1
    words = [record.getMessage() for record in caplog.records]
    assert sum("dropped: they come faster" in word for word in words) == 1
    assert sum("No space left on device" in word for word in words) == 1
    assert f"lifecycle records are written again; {lost} were dropped meanwhile" in words


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB, most of it taken."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk; the test with RLIMIT_FSIZE runs everywhere")
    try:
        (place / "ballast").write_bytes(b"x" * 128 * 1024)
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
