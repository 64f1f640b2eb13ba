"""How `lastword shim` stops: the first signal drains, the second ends it at once."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path

import pytest
from tests.sidecar.process import asking, engine, get, last_event, sidecar

NOWHERE = "http://127.0.0.1:9"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(end: signal.Signals, tmp_path: Path) -> None:
    """Open requests finish, new ones are refused, health checks fail; then it ends with status 0."""
    records = tmp_path / "records.jsonl"
    with (
        engine("--pace", "0.04") as behind,
        sidecar(behind.url, "--shutdown-timeout", "20", LASTWORD_RECORDS=str(records)) as server,
        asking(server.port, {"max_tokens": 30, "stream": True}) as answer,
    ):
        answer.read(100)
        server.process.send_signal(end)
        server.wait_for("shutting down")
        assert get(server.port, "/health")[0] == 503
        with asking(server.port, {}) as refused:
            assert (refused.status, json.loads(refused.read())["error"]["code"]) == (503, "server_shutting_down")
        assert last_event(answer) == "[DONE]"
        assert server.ended() == 0
    codes = [json.loads(line)["error_code"] for line in records.read_text("utf-8").splitlines()]
    assert sorted(map(str, codes)) == ["None", "server_shutting_down"]


def test_what_has_not_finished_in_time_gets_its_terminal() -> None:
    with (
        engine("--pace", "0.2") as behind,
        sidecar(behind.url, "--shutdown-timeout", "0.2") as server,
        asking(server.port, {"max_tokens": 500, "stream": True}) as answer,
    ):
        answer.read(100)
        began = time.monotonic()
        server.process.terminate()
        assert last_event(answer)["error"]["code"] == "server_shutting_down"
        assert server.ended() == 0
        assert time.monotonic() - began < 4


@pytest.mark.parametrize(("second", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_second_signal_ends_it_at_once(second: signal.Signals, status: int) -> None:
    with (
        engine("--pace", "0.2") as behind,
        sidecar(behind.url, "--shutdown-timeout", "30") as server,
        asking(server.port, {"max_tokens": 500, "stream": True}) as answer,
    ):
        answer.read(100)
        server.process.terminate()
        server.wait_for("shutting down")
        began = time.monotonic()
        server.process.send_signal(second)
        assert server.ended() == status
        assert time.monotonic() - began < 2
        server.wait_for("stopped at once: 1 open requests get no last word")


def test_a_stop_with_nothing_open_is_no_warning() -> None:
    with sidecar(NOWHERE) as server:
        server.process.terminate()
        assert server.ended() == 0
        server.wait_for("shutting down: 0 open requests")
    assert [line.split()[0] for line in server.said if "shutting down" in line] == ["INFO"]


def test_a_stop_does_not_wait_for_idle_connections() -> None:
    with engine() as behind, sidecar(behind.url) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as idle:
            idle.sendall(b"GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n")
            assert idle.recv(65536)
            began = time.monotonic()
            server.process.terminate()
            assert server.ended() == 0
        assert time.monotonic() - began < 2
