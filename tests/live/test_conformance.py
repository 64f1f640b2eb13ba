"""The server suite on real vLLM: an unmodified `vllm serve` with the shim mounted is right in all that it can be asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import servers
from tests.live.ahead import Say
from tests.live.turns import go_first

KNOWN = servers.KNOWN / "server-shim.txt"


@pytest.mark.usefixtures("ahead")  # the next tests' servers start meanwhile
@pytest.mark.timeout(300)
def test_vllm_with_the_shim_passes_the_server_profile(engine_paths: dict[str, str], say: Say, tmp_path: Path) -> None:
    """With a baseline without a line; the suite starts the server itself, so that SIGTERM with requests open is played too."""
    assert [line for line in KNOWN.read_text("utf-8").splitlines() if not line.startswith("#")] == []
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "lastword.cli", "conformance", "server", "--profile", "draft"]
    command += ["--report", str(report), *servers.commands()["vllm-shim"]()]
    say("lastword conformance server starts vLLM with the shim (a minute)")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, preexec_fn=go_first)
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = {case["name"]: case["verdict"] for case in json.loads(report.read_text("utf-8"))["cases"]}
    played = {name for name, verdict in verdicts.items() if verdict == "right"}
    assert set(verdicts.values()) == {"right", "skipped"}
    assert len(played) >= 50
    assert {"shutdown/stream-and-answer", "leaving/answer", "load/refused", "request/overflow-stream"} <= played
