"""The README keeps its word: its example runs, its table is what the demo makes today, its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import openai
import pytest

from lastword.demo.__main__ import BEGIN, END
from lastword.demo._endings import BY_CHOICE, MESSAGES, Report, ask_lastword, ask_stock, markdown, play_endings
from lastword.testing import ScriptedServer, answer, failure, stream

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:8000/v1"
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
    assert source.count(ADDRESS) == 1
    with ScriptedServer([exchange]) as server:
        command = [sys.executable, "-W", "error", "-c", source.replace(ADDRESS, server.base_url)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[0] in ("Hello", "Hel")
    assert run.stdout.splitlines()[-1] == last_line


@pytest.mark.parametrize(
    ("exchange", "said"),
    [
        (answer("Hello"), "Hello\n"),
        (failure(400, "context_length_exceeded", "too long"), "failed context_length_exceeded too long\n"),
    ],
)
def test_the_second_example_runs_too(exchange: dict[str, object], said: str) -> None:
    (source,) = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "with_outcome" in block]
    assert source.count(ADDRESS) == 1
    with ScriptedServer([exchange]) as server:
        command = [sys.executable, "-W", "error", "-c", source.replace(ADDRESS, server.base_url)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    assert run.stdout == said


def test_the_example_has_ten_lines_or_so() -> None:
    assert len([line for line in example().splitlines() if line]) <= 12


def test_the_table_is_what_the_clients_report_today() -> None:
    """All but the first line, which names the versions."""
    rows = list(play_endings({"stock": ask_stock, "lastword": ask_lastword}))
    made = markdown(["ending", "stock", "lastword"], rows).splitlines()[1:]
    printed = README.partition(f"{BEGIN}\n")[2].partition(END)[0]
    assert printed.splitlines()[1 : len(made) + 1] == made


def ask_carefully(base_url: str) -> Report:
    """The openai package in a loop that looks for a finish_reason, without which it calls no answer complete."""
    finished, messages = False, cast("Any", list(MESSAGES))
    with openai.OpenAI(base_url=base_url, api_key="k", max_retries=0, timeout=0.5) as client:
        try:
            for chunk in client.chat.completions.create(model="m", messages=messages, stream=True):
                finished = finished or any(choice.finish_reason for choice in chunk.choices or ())
        except openai.APIError:
            finished = False
    return Report("", complete=finished)


def test_a_careful_loop_notices_five_of_six() -> None:
    rows = list(play_endings({"plain": ask_stock, "careful": ask_carefully}))
    assert sum(row.silent("plain") for row in rows) == 6
    assert [row.id for row in rows if row.silent("careful")] == [BY_CHOICE]
    assert "five of the six bold endings, all but (1)" in README


def test_every_relative_link_leads_to_a_file() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)):
        assert f"\n{target}:" in makefile, target


def test_every_environment_variable_is_a_setting() -> None:
    files = ("server_shim/lastword_shim/_settings.py", "sdk/lastword/_config.py")
    source = "".join((ROOT / file).read_text(encoding="utf-8") for file in files).upper()
    for name in set(re.findall(r"LASTWORD_([A-Z_]+)", README)):
        assert re.search(rf"\b{name}\b", source), name


def test_the_markers_are_where_the_demo_writes() -> None:
    assert README.count(BEGIN) == README.count(END) == 1
