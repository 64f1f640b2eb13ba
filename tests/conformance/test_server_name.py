"""What a report calls a server that nobody named: what the command starts, and never the engine behind it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.conformance.command import lastword

from lastword.conformance.server._start import _name_of

RELAY = Path(__file__).parent / "servers/relay.py"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python3.12 tools/gateway.py {port} {upstream}", "gateway"),
        ("node --no-warnings dist/proxy.mjs", "proxy"),
        ("uvicorn my_gateway.main:app --port {port}", "my_gateway.main"),
        ("python -m uvicorn gateway:app", "gateway"),
        ("/usr/bin/python3 -m my_gateway --url http://127.0.0.1:{port}", "my_gateway"),
        ("/opt/bin/llama-server -m m.gguf --port {port}", "llama-server"),
        ("gunicorn -c settings.py gateway:app", "gateway"),
        ("./run.sh --port {port}", "run"),
        ("vllm serve m --host localhost:{port}", "vllm"),
        ("python -c serve()", None),
        ("", None),
    ],
)
def test_a_command_names_the_server(command: str, name: str | None) -> None:
    assert _name_of(command.split()) == name


@pytest.mark.parametrize(
    ("options", "name"), [((), "relay"), (("--name", "My gateway"), "My gateway")], ids=["of the command", "given"]
)
def test_a_report_bears_the_name(options: tuple[str, ...], name: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = (sys.executable, str(RELAY), "{port}", "{upstream}")
    said = lastword(
        "conformance", "server", *options, "--run", "broken-answer/abort", "--report", str(report), "--", *command
    )  # fmt: skip
    assert said.status in {0, 1}, said
    assert json.loads(report.read_text("utf-8"))["implementation"]["name"] == name
    assert f"\n{name}" in f"\n{said.out}"
