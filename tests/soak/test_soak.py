"""A thousand streams at once, a third of them dropped, leave a thousand records in the shim and nothing else.

`scripts/soak` is the program; it says more and can go on for longer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "scripts" / "soak"


def soak(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--json", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == bool(result["wrong"])
    return result


@pytest.mark.timeout(120)
def test_a_thousand_streams_leave_a_thousand_records_and_nothing_else() -> None:
    """Three rounds: no open exchange, no task, no descriptor, no object more, and metrics that add up to the records."""
    result = soak()
    assert result["wrong"] == []
    assert [(look["records"], look["left"]) for look in result["rounds"]] == [(1000, 333)] * 3


def test_what_a_server_does_leave_is_found() -> None:
    """A task, a descriptor and some memory of each request."""
    wrong = soak("--streams", "60", "--pace", "0.03", "--settle", "0.3", "--plant")["wrong"]
    for what in ("tasks: ", "descriptors: ", "objects: "):
        assert [said for said in wrong if what in said], what
