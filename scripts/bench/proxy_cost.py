"""A proxy before an OpenAI-compatible upstream: chunks a second at full load, and what it adds to a chunk's way.

The upstream is the bench's own server, which costs little; the sidecar, LiteLLM's proxy and the way without a proxy are
asked the same. For the speed every event is a send of its own, as fast as it is taken. For the delay each event holds the
time at which it was sent, on the clock that the reader has too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import environments

from bench import BenchError
from bench.client_cost import Say, server
from bench.cpu import cpu_seconds
from setup_steps import SetupError

ROOT = Path(__file__).resolve().parents[2]
KEY = "key-of-the-vectors"  # what litellm_proxy.py is set to
FULL_SPEED = (16, 500)
"""Streams at once, and chunks of each."""
STAMPED = (8, 150)
START_SECONDS = 90.0
_EVENT = re.compile(rb'"content": ?"([^"]+)"')


def commands(upstream: str) -> dict[str, list[str]]:
    """By name, what starts each proxy; ``{port}`` in it is where it is to listen."""
    litellm = str(ROOT / "tests" / "conformance" / "servers" / "litellm_proxy.py")
    return {
        "sidecar": [sys.executable, "-m", "lastword.cli", "shim", "--upstream", upstream, "--port", "{port}"],
        "litellm": [str(environments.ready("litellm-proxy")), litellm, "{port}", upstream],
    }


@contextlib.contextmanager
def started(name: str, command: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Run a proxy; yields its port and its process id.

    Raises:
        BenchError: it does not answer.
    """
    port = _free_port()
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", "/v1/models", headers={"authorization": f"Bearer {KEY}"})
            return connection.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False


async def read(port: int, chunks: int, mode: str) -> list[float]:
    """Read one stream; for each chunk of text the seconds since it was sent, where its text says when that was.

    Raises:
        BenchError: chunks are missing.
    """
    asked = {"model": "m", "messages": [{"role": "user", "content": mode}], "max_tokens": chunks, "stream": True}
    body = json.dumps(asked).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + body)
    delays, whole = [], False
    while line := await reader.readline():
        now = time.monotonic()
        whole = whole or line.startswith(b"data: [DONE]")
        if line.startswith(b"data:") and (found := _EVENT.search(line)):
            delays.append(now - float(found[1]) if mode == "stamped" else 0.0)
        if whole:
            break
    writer.close()
    if len(delays) != chunks or not whole:
        raise BenchError(f"{len(delays)} of {chunks} chunks came")
    return delays


async def _at_once(port: int, streams: int, chunks: int, mode: str) -> tuple[float, list[float]]:
    began = time.monotonic()
    every = await asyncio.gather(*(read(port, chunks, mode) for _ in range(streams)))
    return time.monotonic() - began, [delay for delays in every for delay in delays]


def _speed(port: int, pid: int) -> tuple[float, float]:
    """Chunks a second, and CPU microseconds of the proxy a chunk."""
    streams, chunks = FULL_SPEED
    before = cpu_seconds(pid)
    seconds, _ = asyncio.run(_at_once(port, streams, chunks, "each"))
    return streams * chunks / seconds, (cpu_seconds(pid) - before) / (streams * chunks) * 1e6


def _delay(port: int) -> list[float]:
    return sorted(asyncio.run(_at_once(port, *STAMPED, "stamped"))[1])


def run(options: argparse.Namespace, say: Say) -> dict[str, Any]:
    """For the way without a proxy and for each proxy: speed, and delay."""
    found: dict[str, dict[str, list[Any]]] = {}
    try:
        with contextlib.ExitStack() as stack:
            upstream = stack.enter_context(server()).removesuffix("/v1")
            ways = {"none": (int(upstream.rpartition(":")[2]), os.getpid())}
            for name, command in commands(upstream).items():
                say(f"proxy: starting {name}")
                ways[name] = stack.enter_context(started(name, command))
            for name, (port, _) in ways.items():
                asyncio.run(_at_once(port, 4, 50, "each"))  # what is made at the first need
                found[name] = {"speed": [], "delay": []}
            for number in range(options.rounds):
                for name, (port, pid) in ways.items():
                    found[name]["speed"].append(_speed(port, pid))
                    found[name]["delay"].append(_delay(port))
                say(f"proxy: round {number + 1} of {options.rounds} done")
    except SetupError as error:
        raise BenchError(str(error)) from error
    return {name: _summary(name, each) for name, each in found.items()}


def _summary(name: str, found: dict[str, list[Any]]) -> dict[str, Any]:
    speeds, cpu = zip(*found["speed"], strict=True)
    delays = [{"p50": statistics.median(one), "p99": one[int(0.99 * len(one))]} for one in found["delay"]]
    return {
        "chunks_per_second": round(statistics.median(speeds)),
        "chunks_per_second_rounds": [round(speed) for speed in speeds],
        "cpu_us_per_chunk": None if name == "none" else round(statistics.median(cpu), 1),
        "delay_us": {which: round(statistics.median(one[which] for one in delays) * 1e6) for which in ("p50", "p99")},
    }


def table(result: dict[str, Any]) -> str:
    """For people; what is added is what the way without a proxy takes less."""
    lines = [f"{'before the engine':18} {'chunks/s':>9} {'CPU µs/chunk':>13} {'µs added p50':>13} {'p99':>8}"]
    direct = result["none"]["delay_us"]
    for name, found in result.items():
        added = [found["delay_us"][which] - direct[which] for which in ("p50", "p99")]
        cpu = "" if found["cpu_us_per_chunk"] is None else f"{found['cpu_us_per_chunk']:.1f}"
        told = ("", "") if name == "none" else (f"{added[0]:,}", f"{added[1]:,}")
        lines.append(f"{name:18} {found['chunks_per_second']:9,} {cpu:>13} {told[0]:>13} {told[1]:>8}")
    return "\n".join(lines)
