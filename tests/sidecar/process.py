"""The sidecar as a process of its own, and an engine behind it that can be killed."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.command import started

EMBEDDED = [sys.executable, "-m", "lastword_shim.engine.embedded"]


@dataclass
class Running:
    """A process that serves at ``port``; ``said`` are its lines on standard error so far."""

    process: subprocess.Popen[str]
    port: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ended(self, within: float = 10) -> int:
        return self.process.wait(within)

    def wait_for(self, words: str, within: float = 10) -> None:
        until(lambda: any(words in line for line in self.said), within, f"{words!r} in {self.said}")


def until(true: Callable[[], object], within: float = 10, what: str = "") -> None:
    limit = time.monotonic() + within
    while not true():
        assert time.monotonic() < limit, what or "it did not come true"
        time.sleep(0.01)


def _follow(running: Running) -> None:
    """Read what it says, the ready line first."""
    process = running.process
    assert process.stdout is not None
    threading.Thread(target=_collect, args=(running,), daemon=True).start()
    line = process.stdout.readline()
    assert line.startswith("ready http://"), (line, running.said, process.poll())
    running.port = int(line.rstrip().removesuffix("/v1").rpartition(":")[2])


def _collect(running: Running) -> None:
    assert running.process.stderr is not None
    with contextlib.suppress(ValueError):  # closed
        for line in running.process.stderr:
            running.said.append(line)


@contextlib.contextmanager
def sidecar(upstream: str, *options: str, **environment: str) -> Iterator[Running]:
    with started("shim", "--upstream", upstream, "--port", "0", *options, **environment) as process:
        running = Running(process)
        _follow(running)
        yield running
        if process.poll() is None:
            process.terminate()
            process.wait(10)


@contextlib.contextmanager
def engine(*options: str, port: int = 0) -> Iterator[Running]:
    """The embedded engine, bare."""
    with started_server([*EMBEDDED, "--bare", "--port", str(port), *options]) as running:
        yield running


@contextlib.contextmanager
def started_server(command: Sequence[str]) -> Iterator[Running]:
    """Any server that says ``ready URL``; it is killed at the end."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            running = Running(process)
            _follow(running)
            yield running
        finally:
            process.kill()


@contextlib.contextmanager
def left_alone(port: int, body: dict[str, Any], **headers: str) -> Iterator[socket.socket]:
    """A connection with a chat request sent, whose answer nobody waits for; closed on leaving."""
    sent = json.dumps({"messages": [{"role": "user", "content": "Hello"}], **body}).encode()
    fields = {"host": "a", "content-type": "application/json", "content-length": str(len(sent))}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n".encode() + sent)
        yield client


@contextlib.contextmanager
def asking(port: int, body: dict[str, Any], **headers: str) -> Iterator[http.client.HTTPResponse]:
    """The answer to a chat request, as soon as its head is there."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        sent = json.dumps({"model": "embedded", "messages": [{"role": "user", "content": "Hello"}], **body})
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        client.request("POST", "/v1/chat/completions", sent, {"content-type": "application/json", **given})
        yield client.getresponse()
    finally:
        client.close()


def get(port: int, path: str) -> tuple[int, bytes]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        client.request("GET", path)
        answer = client.getresponse()
        return answer.status, answer.read()
    finally:
        client.close()


def last_event(answer: http.client.HTTPResponse) -> Any:
    """Read a stream to its end; its last event."""
    events = [part.removeprefix("data: ") for part in answer.read().decode().split("\n\n") if part]
    return events[-1] if events[-1] == "[DONE]" else json.loads(events[-1])
