"""Proxies to measure: what starts each, and how one knows that it serves."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import environments
from tests.ports import free_port

from bench import BenchError

ROOT = Path(__file__).resolve().parents[2]
KEY = "key-of-the-vectors"  # what litellm_proxy.py is set to
START_SECONDS = 90.0


def sidecar(upstream: str) -> list[str]:
    """The command; ``{port}`` in it is where it is to listen, ``upstream`` a URL without ``/v1``."""
    return [sys.executable, "-m", "lastword.cli", "shim", "--upstream", upstream, "--port", "{port}"]


def litellm(upstream: str) -> list[str]:
    """Likewise; its environment is made if need be."""
    script = str(ROOT / "tests" / "conformance" / "servers" / "litellm_proxy.py")
    return [str(environments.ready("litellm-proxy")), script, "{port}", upstream]


@contextlib.contextmanager
def started(name: str, command: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Run a proxy; yields its port and its process id.

    Raises:
        BenchError: it does not answer.
    """
    port = free_port()
    with tempfile.TemporaryFile() as log:
        argv = [part.replace("{port}", str(port)) for part in command]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
            try:
                deadline = time.monotonic() + START_SECONDS
                while not _answers(port):
                    if process.poll() is not None or time.monotonic() > deadline:
                        log.seek(0)
                        raise BenchError(f"{name} did not start:\n{log.read()[-3000:].decode('utf-8', 'replace')}")
                    time.sleep(0.1)
                yield port, process.pid
            finally:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()


def _answers(port: int) -> bool:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", "/v1/models", headers={"authorization": f"Bearer {KEY}"})
            return connection.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False
