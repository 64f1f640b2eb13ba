"""Who writes records: processes that share a file, meet its limits, are stuck, end, fork, or are killed."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.shim.lines import Dropped, counts, line, start, until

from lastword_shim.account.sink import FileSink, StreamSink
from lastword_shim.account.writer import Writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


@pytest.mark.parametrize("max_bytes", [0, 1_000_000])
def test_a_limit_on_the_size_of_files_is_met_with_whole_lines(path: Path, max_bytes: int) -> None:
    """And a new file, if files may be set aside at all; else the end comes in its time, and says how many were lost."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); put(1000, 1200)"
    with start("limited", path, 0, max_bytes=max_bytes, keep=10, then=limit) as process:
        _, said = process.communicate(timeout=10)
    written = counts(*sorted(path.parent.iterdir(), reverse=True))
    assert process.returncode == 0
    if max_bytes:
        assert written == list(range(1000, 1200))
        assert said == b""
    else:
        assert written == list(range(1000, 1000 + len(written)))
        assert b"File too large" in said
        assert f"{200 - len(written)} lifecycle records could not be written before the end".encode() in said


def test_processes_that_share_a_file_lose_nothing_and_tear_nothing(path: Path) -> None:
    """While each sets it aside again and again."""
    processes = [start(name, path, 2000, max_bytes=20_000, keep=1000) for name in ("a", "b", "c")]
    for process in processes:
        with process:
            _, said = process.communicate(timeout=30)
            assert (process.returncode, said) == (0, b"")
    files = list(path.parent.iterdir())
    found = Counter(json.loads(text)["by"] for each in files for text in each.read_bytes().splitlines())
    assert found == {"a": 2000, "b": 2000, "c": 2000}
    assert len(files) > 50
    assert max(each.stat().st_size for each in files) <= 20_000
    for name in ("a", "b", "c"):  # in each one's order, oldest file first
        in_order = sorted(files, key=lambda each: -int(each.suffix[1:]) if each.suffix != ".jsonl" else 1)
        lines = [json.loads(text) for each in in_order for text in each.read_bytes().splitlines()]
        assert [each["count"] for each in lines if each["by"] == name] == list(range(2000))


def test_a_process_that_is_killed_loses_at_most_what_it_was_writing(path: Path) -> None:
    """And leaves a file that others go on with."""
    with start("killed", path, 1, then="put(1, 10**9)") as process:
        until(lambda: path.exists() and path.stat().st_size > 100_000, "lines")
        process.kill()
    sink = FileSink(str(path))
    sink.send([line(-1)])
    sink.forget()
    *killed, last = path.read_bytes().splitlines()
    broken = [text for text in killed if not text.endswith(b"}")]
    assert len(broken) <= 1
    assert [json.loads(text)["count"] for text in killed if text not in broken] == list(
        range(len(killed) - len(broken))
    )
    assert json.loads(last)["count"] == -1


def test_one_that_stands_still_with_the_lock_does_not_stop_the_others_exit(path: Path) -> None:
    """It says so, and ends."""
    with path.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        started = time.monotonic()
        with start("waits", path, 3) as process:
            _, said = process.communicate(timeout=10)
    assert process.returncode == 0
    assert time.monotonic() - started < 6
    assert b"3 lifecycle records could not be written before the end" in said


@pytest.mark.parametrize("nonblocking", [False, True])
def test_a_pipe_that_nobody_reads_holds_up_neither_the_process_nor_its_exit(nonblocking: bool) -> None:
    """What is in the pipe is whole lines but the last."""
    reader, sink = os.pipe()
    os.set_blocking(sink, not nonblocking)
    try:
        with start("stuck", "-", 5000, then="print('done', file=sys.stderr, flush=True)", stdout=sink) as process:
            assert process.stderr is not None
            started = time.monotonic()
            said = process.stderr.read()
            assert process.wait(timeout=10) == 0
        assert time.monotonic() - started < 6
        assert said.startswith(b"done")
        assert b"lifecycle records could not be written before the end" in said
        os.close(sink)
        sink = -1
        with os.fdopen(reader, "rb", closefd=False) as pipe:
            lines = pipe.read().splitlines()
        assert [json.loads(text)["count"] for text in lines[:-1]] == list(range(len(lines) - 1))
        assert len(lines) > 100
    finally:
        for descriptor in (reader, sink):
            if descriptor >= 0:
                os.close(descriptor)


def test_lines_of_several_processes_stay_whole_in_one_pipe() -> None:
    """A line is one write."""
    reader, sink = os.pipe()
    processes = [start(name, "-", 500, stdout=sink) for name in ("a", "b")]
    os.close(sink)
    with os.fdopen(reader, "rb") as pipe:
        found = Counter(json.loads(text)["by"] for text in pipe.read().splitlines())
    assert found == {"a": 500, "b": 500}
    for process in processes:
        with process:
            process.communicate(timeout=10)


def test_what_was_put_last_is_written_at_the_interpreters_exit(path: Path) -> None:
    """Though its thread is a daemon."""
    with start("exits", path, 3000) as process:
        _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (0, b"")
    assert counts(path) == list(range(3000))


def test_a_child_of_a_fork_writes_its_own_lines_and_not_its_parents(path: Path) -> None:
    """Both go on."""
    then = """
child = os.fork()
put(100 if child else 200, 110 if child else 210)
if child: os.waitpid(child, 0)
"""
    with start("forks", path, 10, then=then) as process:
        _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (0, b"")
    assert sorted(counts(path)) == [*range(10), *range(100, 110), *range(200, 210)]


def test_sigterm_loses_nothing_that_had_a_moment(path: Path) -> None:
    """Nothing waits to be written: no batch is collected, no exit is needed."""
    with start("ends", path, 100, then="print('put', file=sys.stderr, flush=True); time.sleep(60)") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"put\n"
        until(lambda: path.exists() and len(counts(path)) == 100, "lines")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == -signal.SIGTERM


def test_putting_never_waits_for_a_sink_that_does() -> None:
    """Memory is bounded; each line takes microseconds, also where it is dropped."""
    reader, sink = os.pipe()
    dropped = Dropped()
    writer = Writer(StreamSink(sink), dropped, most_bytes=200_000)
    started = time.monotonic()
    for count in range(20_000):
        writer.put(line(count))
    took = time.monotonic() - started
    os.close(reader)  # the thread's write fails, and it may end
    writer.close(0.1)
    os.close(sink)
    assert took < 2
    assert dropped.number >= 17_000
