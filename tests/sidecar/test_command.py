"""`lastword shim` as a user runs it: what it says, how it starts, how it stops."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.conformance.command import lastword, started
from tests.ports import free_port
from tests.sidecar.process import Running, asking, engine, get, sidecar, until
from typer.testing import CliRunner, Result

from lastword.cli._app import app
from lastword_shim import Settings

NOWHERE = "http://127.0.0.1:9"


def shim(*options: str, **environment: str) -> Result:
    """The command in this process: what it says, and its status."""
    return CliRunner().invoke(app, ["shim", *options], env=environment)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "Missing option '--upstream'"),
        (("--upstream", "engine:8000"), "--upstream: 'engine:8000' is no http:// or https:// URL: give a URL such as"),
        (("--upstream", NOWHERE, "--port", "70000"), "Invalid value for '--port'"),
        (
            ("--upstream", NOWHERE, "--host", "192.0.2.1"),
            "cannot listen on 192.0.2.1 port 8080: Cannot assign requested",
        ),
        (("--upstream", NOWHERE, "--host", "no.such.invalid"), "cannot listen on no.such.invalid port 8080: "),
        (("--upstream", NOWHERE, "--upstream-ca", "missing"), "--upstream-ca missing cannot be used: No such file"),
    ],
)
def test_what_cannot_be_used_is_named(options: tuple[str, ...], words: str) -> None:
    """One sentence on standard error, and status 2."""
    said = shim(*options)
    assert (said.exit_code, said.stdout) == (2, "")
    assert words in said.stderr


def test_a_setting_that_cannot_be_used_is_named() -> None:
    said = shim("--upstream", NOWHERE, LASTWORD_IDLE_TIMEOUT="soon")
    assert said.exit_code == 2
    assert "lastword shim: LASTWORD_IDLE_TIMEOUT='soon' cannot be used" in said.stderr


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = lastword("shim", "--upstream", NOWHERE, "--port", port)
    assert (said.status, said.out) == (2, "")
    told = f"cannot listen on 127.0.0.1 port {port}: Address already in use; --port takes another, 0 any free one"
    assert said.err == f"lastword shim: {told}\n"


def test_without_what_it_needs_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lastword_shim.sidecar.serve", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "lastword_shim.sidecar.serve")
    said = shim("--upstream", NOWHERE)
    assert (said.exit_code, said.stderr) == (
        2,
        "lastword shim: this needs uvicorn: pip install '.[sidecar]' in a clone of lastword\n",
    )


WITHOUT = "import sys; sys.modules['opentelemetry'] = None; "


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_traces_without_what_they_need_are_a_sentence(options: tuple[str, ...]) -> None:
    """And nothing listens."""
    code = WITHOUT + "from lastword.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "shim", "--upstream", NOWHERE, "--port", "0", *options],
        env={**os.environ, "LASTWORD_OTEL": "on"}, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("lastword shim: LASTWORD_OTEL=on needs lastword[otel]: pip install '.[otel]' in a clone")


def test_the_embedded_engine_says_what_cannot_be_used_too() -> None:
    code = WITHOUT + "from lastword_shim.engine.embedded.__main__ import main; main(['--port', '0'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LASTWORD_OTEL": "on"}, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("embedded engine: LASTWORD_OTEL=on needs lastword[otel]: ")
    assert len(done.stderr.splitlines()) == 1


def test_ctrl_c_ends_the_embedded_engine_quietly() -> None:
    with engine() as running:
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 130
        assert running.said == []


INTERRUPTS = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == sys.argv[-1]: os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from lastword.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["lastword.cli._app", "typer", "uvicorn", "lastword_shim.sidecar.serve"])
def test_ctrl_c_during_the_start_is_a_sentence(module: str) -> None:
    """Whatever is loaded just then."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTS, "shim", "--port", "0", "--upstream", NOWHERE, "--upstream-ca", module],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "lastword shim: interrupted\n")


def test_help_says_how() -> None:
    said = shim("--help", COLUMNS="120")
    assert said.exit_code == 0
    assert "lastword shim --upstream http://127.0.0.1:8000" in said.stdout


def test_the_settings_are_explained_without_an_upstream() -> None:
    """All of them, from the one table that the documentation shows too."""
    said = shim("--settings")
    assert said.exit_code == 0
    assert "LASTWORD_ENDPOINTS: on or off; default on\n" in said.stdout
    words = " ".join(said.stdout.split())
    for variable, takes, default, meaning in Settings.table():
        assert f"{variable}: {takes}; default {default} {meaning.replace('``', '')}" in words


def test_the_list_of_commands_loads_no_server() -> None:
    """It has this one, and stays quick."""
    code = "import sys; from lastword.cli._app import app; app(['--help'], standalone_mode=False)"
    code += "; print('loaded:', *sorted(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    listed, _, loaded = said.partition("loaded:")
    assert " shim " in listed
    assert "lastword_shim.sidecar.command" in loaded.split()
    assert not {"uvicorn", "prometheus_client", "pydantic_settings"} & set(loaded.split())


def test_check_looks_once_and_says_what_a_start_would_say(tmp_path: Path) -> None:
    """The upstream, settings with what is to be remarked of them, and names that nobody reads; nothing is written."""
    records = tmp_path / "records.jsonl"
    with engine() as behind:
        said = shim(
            "--upstream", behind.url, "--check",
            LASTWORD_ENDPOINTS="off", LASTWORD_CONTEXT_POLICY="clamp", LASTWORD_IDLE_TIMOUT="15",
            LASTWORD_RECORDS=str(records),
        )  # fmt: skip
    assert said.exit_code == 0
    health, start, unknown = said.stdout.splitlines()
    assert health == f"{behind.url} answers 200 to GET /health"
    assert start.startswith("engine: any behind HTTP, so it sees only what passes; settings: ")
    assert "LASTWORD_ENDPOINTS=off" in start
    assert "LASTWORD_CONTEXT_POLICY=clamp has no effect here" in start
    assert unknown.endswith("LASTWORD_IDLE_TIMOUT (nearest: LASTWORD_IDLE_TIMEOUT)")
    assert not records.exists()
    said = shim("--upstream", behind.url, "--check")
    assert said.exit_code == 1
    assert said.stdout.startswith(f"{behind.url} does not answer: ")


@pytest.mark.parametrize("records", ["missing/records.jsonl", "."])
def test_check_finds_records_that_cannot_be_written(records: str, tmp_path: Path) -> None:
    said = shim("--upstream", NOWHERE, "--check", LASTWORD_RECORDS=str(tmp_path / records))
    assert said.exit_code == 2
    assert "cannot be opened for appending: " in said.stderr


def test_a_misspelt_variable_is_a_warning() -> None:
    with sidecar(NOWHERE, LASTWORD_IDLE_TIMOUT="15") as server:
        server.wait_for("unknown settings, which have no effect: LASTWORD_IDLE_TIMOUT (nearest: LASTWORD_IDLE_TIMEOUT)")


def test_it_starts_without_its_upstream_and_says_so() -> None:
    """And recovers without being started again once that is there."""
    port = free_port()
    with sidecar(f"http://127.0.0.1:{port}") as server:
        server.wait_for("which does not answer: ")
        assert any("settings: defaults" in line for line in server.said)
        with asking(server.port, {"max_tokens": 2}) as answer:
            assert (answer.status, json.loads(answer.read())["error"]["code"]) == (503, "engine_unavailable")
        assert get(server.port, "/lastword/ready")[0] == 503
        status, body = get(server.port, "/health")
        assert (status, len(json.loads(body)["error"]["request_id"])) == (503, 32)
        assert get(server.port, "/lastword/metrics")[0] == 200  # a probe of liveness: it asks nobody
        with engine("--pace", "0.001", port=port):
            with asking(server.port, {"max_tokens": 2}) as answer:
                assert answer.status == 200
            assert get(server.port, "/lastword/ready")[0] == 200
    assert server.process.returncode == 0


def test_records_on_standard_output_stand_there_alone() -> None:
    """The ready line then goes to standard error."""
    options = ("shim", "--upstream", NOWHERE, "--port", "0")
    with started(*options, LASTWORD_RECORDS="-") as process:
        assert process.stderr is not None
        line = ""
        while not line.startswith("ready "):
            line = process.stderr.readline()
        port = int(line.rstrip().removesuffix("/v1").rpartition(":")[2])
        assert get(port, "/v1/models")[0] == 503
        process.terminate()
        out, _ = process.communicate(timeout=10)
    assert [json.loads(line)["error_code"] for line in out.splitlines()] == ["engine_unavailable"]
    assert process.returncode == 0


def test_it_ends_with_standard_input_where_that_is_asked() -> None:
    """As the demo starts it: a parent that is killed leaves nothing behind."""
    command = [
        sys.executable,
        "-m",
        "lastword.cli",
        "shim",
        "--upstream",
        NOWHERE,
        "--port",
        "0",
        "--until-stdin-closes",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline().startswith("ready ")
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_thousand_streams_at_a_time() -> None:
    """Each gets its own answer whole; afterwards nothing is left open."""
    body = b'{"model": "embedded", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "stream": true}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nconnection: close\r\n"
    answers: list[bytes] = []

    def read(some: list[socket.socket]) -> None:
        for each in some:
            got = b""
            while part := each.recv(65536):
                got += part
            each.close()
            answers.append(got)

    with engine("--pace", "0.01") as behind, sidecar(behind.url) as server:
        before = _files(server)
        behind.process.send_signal(signal.SIGSTOP)  # so that all are open at a time
        sockets = [socket.create_connection(("127.0.0.1", server.port), timeout=40) for _ in range(1000)]
        for each in sockets:
            each.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        until(lambda: _files(server) >= before + 2000, 20, "they are not all open at a time")
        behind.process.send_signal(signal.SIGCONT)
        readers = [threading.Thread(target=read, args=(sockets[n::8],)) for n in range(8)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(40)
        assert len(answers) == 1000
        assert all(got.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") for got in answers)
        until(lambda: _files(server) < before + 300, 10, "descriptors are left open")


def _files(server: Running) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
