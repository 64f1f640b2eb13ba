"""`lastword report` that is stopped: by whoever reads its output, or by Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.report.conftest import record, write
from tests.report.test_command import REPORT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "records.jsonl", record())


def test_a_reader_that_has_seen_enough_is_no_error(path: Path) -> None:
    """`lastword report … | head -1`, where the rest is more than a pipe holds."""
    every = [record(number, model=f"model-{number}") for number in range(60)]
    before = write(path.with_name("before"), *every)
    argv = [*REPORT, str(write(path, *every)), "--before", str(before), "--json"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(argv, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE, "it has met the end of the pipe"


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_nobody_who_reads_is_no_error_either(path: Path, form: list[str]) -> None:
    """Nor is it what 1 means: that some lines were no records."""
    reader, sink = os.pipe()
    os.close(reader)
    done = subprocess.run([*REPORT, path, *form], stdout=sink, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(sink)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_ctrl_c_ends_it_with_a_word(tmp_path: Path) -> None:
    """And no half a page."""
    fifo, page = tmp_path / "records", tmp_path / "report.html"
    os.mkfifo(fifo)
    with subprocess.Popen([*REPORT, fifo, "--html", page], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        with fifo.open("wb") as sink:  # it has opened its end
            sink.write(json.dumps(record()).encode() + b"\n")
            sink.flush()
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (130, b"lastword: interrupted\n")
    assert not page.exists()
