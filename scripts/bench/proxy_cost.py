"""A proxy before an OpenAI-compatible upstream: chunks a second at full load, and what it adds to a chunk's way.

The upstream is the bench's own server, which costs little; the sidecar, LiteLLM's proxy and the way without a proxy are
asked the same. For the speed every event is a send of its own, as fast as it is taken. For the delay each event holds the
time at which it was sent, on the clock that the reader has too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import statistics
import time
from typing import Any

from bench import BenchError
from bench.client_cost import Say, server
from bench.cpu import cpu_seconds
from bench.proxies import KEY, litellm, sidecar, started
from setup_steps import SetupError

FULL_SPEED = (16, 500)
"""Streams at once, and chunks of each."""
STAMPED = (8, 150)
_EVENT = re.compile(rb'"content": ?"([^"]+)"')


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
            for name, command in {"sidecar": sidecar(upstream), "litellm": litellm(upstream)}.items():
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
