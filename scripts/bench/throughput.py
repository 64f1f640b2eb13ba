"""Tokens a second of real vLLM, with the shim against bare, in one process and in turns.

Beside it the CPU time of the API server's process for a token, which is where the shim works: other load on the machine
touches that less.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import Any

from tests.live.vllm_server import VllmServer

from bench import BenchError
from bench.cpu import cpu_seconds
from bench.engines import WAYS, Say, engine
from overload.callers import Target, try_once
from overload.calls import Call

LOADS = {"smollm2": {8: 100, 64: 40}, "tiny": {8: 500, 64: 150}}
"""By model the streams at once, and the tokens of each.  SmolLM2-135M has 30 layers, and few models in use cost an engine less;
the tiny one has two, so that the server around the engine has as much to do."""
ENDLESS = 300.0


async def stream(port: int, way: str, streams: int, tokens: int) -> float:
    """Tokens a second of that many streams together, bare or with the shim, from the first request to the last end.

    Raises:
        BenchError: a stream was not whole.
    """
    target, began = Target(port, headers=WAYS[way]), time.monotonic()
    calls = [Call(number, 0.0, True, 16, tokens, ENDLESS, number) for number in range(streams)]
    ended = await asyncio.gather(*(try_once(call, target, 1, began) for call in calls))
    seconds = time.monotonic() - began
    broken = [attempt for attempt, _ in ended if attempt.tokens != tokens]
    if broken:
        raise BenchError(f"a stream did not complete: {broken[0]}")
    return streams * tokens / seconds


def run(options: argparse.Namespace, say: Say) -> dict[str, Any]:
    """For each model and load: tokens a second and CPU a token of both in turns, and the ratios."""
    result: dict[str, Any] = {}
    for model, loads in LOADS.items():
        with engine(say, model) as server:
            for way in WAYS:
                asyncio.run(stream(server.port, way, 64, 20))  # what is made at the first need
            for streams, tokens in loads.items():
                say(f"throughput: {model}, {streams} streams")
                result[f"{model}, {streams} streams"] = _pairs(server, streams, tokens, options.pairs)
    return result


def _pairs(server: VllmServer, streams: int, tokens: int, pairs: int) -> dict[str, Any]:
    speed: dict[str, list[float]] = {way: [] for way in WAYS}
    cpu: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(pairs):
        for name in ("bare", "shim") if number % 2 else ("shim", "bare"):
            before = cpu_seconds(server.process.pid)
            speed[name].append(asyncio.run(stream(server.port, name, streams, tokens)))
            cpu[name].append((cpu_seconds(server.process.pid) - before) / (streams * tokens) * 1e6)
    ratios = [shim / bare for shim, bare in zip(speed["shim"], speed["bare"], strict=True)]
    medians = {name: statistics.median(values) for name, values in speed.items()}
    return {
        "tokens_per_second": {name: round(value, 1) for name, value in medians.items()},
        "ratio_of_medians": round(medians["shim"] / medians["bare"], 4),
        "ratio_of_pairs": {name: round(value, 4) for name, value in _spread(ratios).items()},
        "api_server_cpu_us_per_token": {name: round(statistics.median(values), 1) for name, values in cpu.items()},
        "pairs": [[round(speed["bare"][at], 1), round(speed["shim"][at], 1)] for at in range(pairs)],
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def table(result: dict[str, Any]) -> str:
    """For people."""
    heads = f"{'ratio':>7} {'of pairs: min':>14} {'median':>7} {'max':>7} {'CPU µs/token: bare':>19} {'shim':>7}"
    lines = [f"{'tokens/s of vLLM':20} {'bare':>8} {'shim':>8} {heads}"]
    for name, found in result.items():
        bare, shim = (found["tokens_per_second"][which] for which in ("bare", "shim"))
        ratio, cpu = found["ratio_of_pairs"], found["api_server_cpu_us_per_token"]
        lines.append(
            f"{name:20} {bare:8.0f} {shim:8.0f} {found['ratio_of_medians']:7.3f} {ratio['min']:14.3f} "
            f"{ratio['median']:7.3f} {ratio['max']:7.3f} {cpu['bare']:19.1f} {cpu['shim']:7.1f}"
        )
    return "\n".join(lines)
