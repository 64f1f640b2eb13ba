"""CPU per streamed chunk: lastword, openai-python, and httpx with `json.loads` by hand, all in one run.

A server in a process of its own plays a chat stream over loopback; each client, in a fresh process, reads a short stream to
warm up and then the whole one, and reports the CPU time (user and system) that its process took for that. The order of the
clients turns from round to round. A client that misses a chunk ends the run: its time would mean nothing.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.metadata
import platform
import pstats
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import BenchError
from bench.clients import CLIENTS
from bench.server import word

HERE = Path(__file__).resolve().parent
WARM_UP = 500
Say = Callable[[str], None]
PACKAGES = ("lastword", "openai", "httpx", "httpx2", "pydantic")


@contextmanager
def server() -> Iterator[str]:
    """Run the server; yields its base URL."""
    argv = [sys.executable, str(HERE / "server.py")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


def measure(name: str, url: str, chunks: int, mode: str) -> float:
    """CPU microseconds a chunk of one client, in this process.

    Raises:
        BenchError: not every chunk arrived.
    """
    read = CLIENTS[name](url, mode)
    read(WARM_UP)
    started = time.process_time()
    got = read(chunks)
    spent = time.process_time() - started
    expected = chunks, sum(len(word(number)) for number in range(chunks))
    if got != expected:
        raise BenchError(f"{name} read {got} (chunks, characters), not {expected}")
    return spent / chunks * 1e6


def measure_apart(name: str, url: str, chunks: int, mode: str) -> float:
    """The same in a fresh process."""
    argv = [sys.executable, str(HERE), "client", "--chunks", str(chunks), "--worker", name, "--url", url]
    argv += ["--paced"] if mode == "paced" else []
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{name} failed:\n{done.stderr}")
    return float(done.stdout)


def run_rounds(url: str, options: argparse.Namespace, say: Say) -> dict[str, list[float]]:
    """Every client once a round, starting with another one each time."""
    names = options.client or list(CLIENTS)
    spent: dict[str, list[float]] = {name: [] for name in names}
    for number in range(options.rounds):
        turn = number % len(names)
        for name in [*names[turn:], *names[:turn]]:
            spent[name].append(measure_apart(name, url, options.chunks, options.mode))
        say(f"client: round {number + 1} of {options.rounds} done")
    return spent


def run(options: argparse.Namespace, say: Say) -> dict[str, Any]:
    """Measure all clients, or those that the options name."""
    with server() as url:
        return summary(run_rounds(url, options, say), options)


def summary(spent: dict[str, list[float]], options: argparse.Namespace) -> dict[str, Any]:
    """What `--json` prints: versions, and for each client the µs of each round, the least and the median."""
    return {
        "chunks": options.chunks,
        "mode": options.mode,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "cpu_us_per_chunk": {
            name: {"min": min(times), "median": statistics.median(times), "rounds": times}
            for name, times in spent.items()
        },
    }


def table(result: dict[str, Any]) -> str:
    """The summary for people; ratios are of medians."""
    clients = result["cpu_us_per_chunk"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    lines = [
        f"{result['chunks']:,} chunks, {result['mode']}; CPython {result['python']} {result['machine']}; {versions}",
        f"{'CPU µs a chunk':16} {'min':>8} {'median':>8} {'× by hand':>10} {'openai takes ×':>15}",
    ]
    by_hand = clients.get("httpx by hand", {}).get("median")
    for name, times in clients.items():
        stock = clients.get("openai async" if name.endswith("async") else "openai", {}).get("median")
        hand_ratio = f"{times['median'] / by_hand:.2f}" if by_hand else ""
        stock_ratio = f"{stock / times['median']:.2f}" if stock else ""
        lines.append(f"{name:16} {times['min']:8.1f} {times['median']:8.1f} {hand_ratio:>10} {stock_ratio:>15}")
    return "\n".join(lines)


def profile(options: argparse.Namespace) -> None:
    """Print the profile of one client (the first `--client`, else lastword)."""
    name = (options.client or ["lastword"])[0]
    with server() as url:
        read = CLIENTS[name](url, options.mode)
        read(WARM_UP)
        profiler = cProfile.Profile()
        profiler.runcall(read, options.chunks)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(35)
