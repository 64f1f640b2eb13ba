"""From a caller's socket closing until the engine makes no token any more: vLLM bare, with the shim, behind the sidecar.

Looked at from outside, the same way for all: the engine's own `vllm:generation_tokens_total` is read again and again, the
first time right before the socket closes. The end of the last reading that was higher than the one before is when it had
stopped, at the latest; a reading takes some milliseconds, which are told. So are the tokens since the first reading.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import socket
import statistics
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from tests.live.vllm_server import VllmServer

from bench import BenchError
from bench.engines import WAYS, Say, engine
from bench.proxies import sidecar, started

PATH = "/v1/completions"
TOKENS = 1900
QUIET = 0.25
"""Seconds without a new token after which the engine has stopped; a token takes some milliseconds."""
_GENERATED = re.compile(rb"^vllm:generation_tokens_total\{[^}]*\} (\S+)$", re.MULTILINE)


class Counter:
    """The engine's count of tokens, over a connection that stays open."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def read(self) -> float:
        """How many so far."""
        self._connection.request("GET", "/metrics")
        return sum(float(value) for value in _GENERATED.findall(self._connection.getresponse().read()))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Departure:
    """One caller that left: milliseconds until the engine had stopped, tokens made since, milliseconds of a reading."""

    stopped: float
    tokens: float
    reading: float


def leave(port: int, way: str, server: VllmServer, *, stream: bool) -> Departure:
    """Ask, and leave in the middle of the answer.

    Raises:
        BenchError: the engine went on to the end of the answer.
    """
    server.wait_idle()
    with closing(Counter(server.port)) as counter:
        before = counter.read()
        asked = {"model": "m", "prompt": "hello", "max_tokens": TOKENS, "ignore_eos": True, "stream": stream}
        body = json.dumps(asked).encode()
        head = (
            f"POST {PATH} HTTP/1.1\r\nhost: x\r\n{WAYS[way]}content-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(head.encode() + body)
            while (tokens := counter.read()) < before + 100:
                pass
        return _until_quiet(counter, tokens, most=before + TOKENS)


def _until_quiet(counter: Counter, tokens: float, *, most: float) -> Departure:
    left = last_rise = time.monotonic()
    first, readings = tokens, 0
    while time.monotonic() < last_rise + QUIET:
        now, readings = counter.read(), readings + 1
        if now > tokens:
            tokens, last_rise = now, time.monotonic()
        if tokens >= most:
            raise BenchError("the engine went on to the end of an answer whose caller had left")
    return Departure((last_rise - left) * 1000, tokens - first, (time.monotonic() - left) * 1000 / readings)


def run(options: argparse.Namespace, say: Say) -> dict[str, Any]:
    """For each way in, streamed and whole: milliseconds of every departure, and their median and most."""
    result: dict[str, Any] = {}
    with engine(say) as server, started("sidecar", sidecar(server.root_url)) as (front, _):
        ways = {**{way: (server.port, way) for way in WAYS}, "sidecar": (front, "bare")}
        for kind in ("stream", "whole"):
            found: dict[str, list[Departure]] = {name: [] for name in ways}
            for _ in range(options.departures):
                for name, (port, way) in ways.items():
                    found[name].append(leave(port, way, server, stream=kind == "stream"))
            result[kind] = {name: _summary(values) for name, values in found.items()}
            say(f"stop: {options.departures} callers left ({kind})")
    return result


def _summary(every: list[Departure]) -> dict[str, Any]:
    times = sorted(one.stopped for one in every)
    return {
        "median": round(statistics.median(times), 1),
        "max": round(times[-1], 1),
        "tokens": statistics.median(one.tokens for one in every),
        "reading": round(statistics.median(one.reading for one in every), 1),
        "all": [round(value, 1) for value in times],
    }


def table(result: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{'ms until it stops':18} {'median':>8} {'max':>8} {'tokens':>8} {'a reading takes':>16}"]
    for kind, ways in result.items():
        for name, found in ways.items():
            numbers = f"{found['median']:8.1f} {found['max']:8.1f} {found['tokens']:8.0f} {found['reading']:16.1f}"
            lines.append(f"{name + ', ' + kind:18} {numbers}")
    return "\n".join(lines)
