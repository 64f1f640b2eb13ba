"""What ends `lastword shim` besides the signals that are meant to, and what comes while it starts."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time

from tests.conformance.command import started
from tests.ports import free_port
from tests.sidecar.process import asking, engine, get, last_event, sidecar, until

NOWHERE = "http://127.0.0.1:9"


def test_a_terminal_that_closes_drains_and_is_no_second_signal() -> None:
    with (
        engine("--pace", "0.04") as behind,
        sidecar(behind.url, "--shutdown-timeout", "20") as server,
        asking(server.port, {"max_tokens": 30, "stream": True}) as answer,
    ):
        answer.read(100)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("shutting down")
        server.process.send_signal(signal.SIGHUP)
        assert last_event(answer) == "[DONE]"
        assert server.ended() == 0


def test_a_signal_while_it_looks_at_a_silent_upstream() -> None:
    """It ends at once, and does not say that it is ready."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with started("shim", "--upstream", url, "--port", "0") as process:
            silent.settimeout(20)
            connection, _ = silent.accept()
            began = time.monotonic()
            process.terminate()
            out, _ = process.communicate(timeout=10)
            connection.close()
    assert (process.returncode, out) == (0, "")
    assert time.monotonic() - began < 2.5


def test_with_standard_output_closed_it_serves_all_the_same() -> None:
    port = free_port()
    command = [sys.executable, "-m", "lastword.cli", "shim", "--upstream", NOWHERE, "--port", str(port)]
    with subprocess.Popen(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:

        def serves() -> bool:
            try:
                return get(port, "/lastword/ready")[0] == 503
            except OSError:
                return False

        try:
            until(serves, 20)
        finally:
            process.terminate()
            _, said = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "Traceback" not in said
