"""The README keeps its word: its example runs, its table is what the demo makes today, its links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lastword.conformance._endings import ask_lastword, ask_stock, markdown, play_endings
from lastword.demo import BEGIN, END
from lastword.testing import ScriptedServer, answer, stream

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def example() -> str:
    blocks: list[str] = re.findall(r"<!-- tested: .*? -->\n```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 1
    return blocks[0]


@pytest.mark.parametrize(
    ("exchange", "last_line"),
    [
        (stream("Hel", "lo"), "completed"),
        (stream("Hel", end="truncate"), "incomplete: stream_incomplete, retryable: True, received: 'Hel'"),
        (
            stream("Hel", done=False, finish_reason=None),
            "incomplete: stream_incomplete, retryable: True, received: 'Hel'",
        ),
    ],
)
def test_the_example_runs_as_it_is_printed(exchange: dict[str, object], last_line: str) -> None:
    source = example()
    address = "http://127.0.0.1:8000/v1"
    assert source.count(address) == 1
    with ScriptedServer([exchange]) as server:
        command = [sys.executable, "-W", "error", "-c", source.replace(address, server.base_url)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[0] in ("Hello", "Hel")
    assert run.stdout.splitlines()[-1] == last_line


def test_the_second_example_runs_too() -> None:
    (source,) = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "with_outcome" in block]
    with ScriptedServer([answer("Hello")]) as server:
        environment = {**os.environ, "LASTWORD_BASE_URL": server.base_url}
        command = [sys.executable, "-W", "error", "-c", f"{source}\nassert outcome.completed and done.choices"]
        subprocess.run(command, env=environment, timeout=50, check=True)


def test_the_example_has_ten_lines_or_so() -> None:
    assert len([line for line in example().splitlines() if line]) <= 12


def test_the_table_is_what_the_clients_report_today() -> None:
    """All but the first line, which names the versions."""
    rows = list(play_endings({"stock": ask_stock, "lastword": ask_lastword}))
    made = markdown(["ending", "stock", "lastword"], rows).splitlines()[1:]
    printed = README.partition(f"{BEGIN}\n")[2].partition(END)[0]
    assert printed.splitlines()[1 : len(made) + 1] == made


def test_every_relative_link_leads_to_a_file() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)):
        assert f"\n{target}:" in makefile, target


def test_every_environment_variable_is_a_setting_of_the_shim() -> None:
    source = (ROOT / "server_shim/lastword_shim/_settings.py").read_text(encoding="utf-8").upper()
    for name in set(re.findall(r"LASTWORD_([A-Z_]+)", README)):
        assert re.search(rf"\b{name}\b", source), name


def test_the_markers_are_where_the_demo_writes() -> None:
    assert README.count(BEGIN) == README.count(END) == 1
