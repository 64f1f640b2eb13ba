#!/usr/bin/env python3
"""What lastword costs, measured on this machine in one run. It asserts no speed.

client       CPU per streamed chunk: lastword, openai-python, httpx by hand (1 minute)
throughput   tokens/s of real vLLM with the shim against bare, at 8 and 64 streams (5 minutes; needs `make engine`)
chunk        what the shim adds to each chunk: median and 99th of a hundred
stop         from a caller's socket closing until the engine's tokens stop: vLLM bare, with the shim, behind the sidecar
proxy        the sidecar and LiteLLM's proxy before the same upstream: chunks/s, and what each adds to a chunk

make bench                                    all of it
make bench BENCH="throughput chunk"           some of it
make bench BENCH="client --paced"             events arrive one by one, as from an engine, instead of all at once
make bench BENCH="client --profile"           where lastword's time goes (cProfile; slower than without)
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scoreboard"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "environment"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.live.turns import go_first

import marked
from bench import BenchError, client_cost
from bench.clients import CLIENTS

PARTS = {
    "client": "client_cost",
    "throughput": "throughput",
    "chunk": "chunk_time",
    "stop": "stop_time",
    "proxy": "proxy_cost",
}
_started = time.monotonic()


def say(text: str) -> None:
    print(f"[bench {time.monotonic() - _started:4.0f}s] {text}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all of them if none is named")
    parser.add_argument("--chunks", type=int, default=20_000, help="client: content chunks in the stream (20000)")
    parser.add_argument("--rounds", type=int, default=5, help="client: times that each client runs (5)")
    parser.add_argument(
        "--client", action="append", choices=list(CLIENTS), help="client: only this one; may be repeated"
    )
    parser.add_argument(
        "--paced", dest="mode", action="store_const", const="paced", default="at once", help="client: one by one"
    )
    parser.add_argument("--profile", action="store_true", help="client: profile one instead of measuring all")
    parser.add_argument("--pairs", type=int, default=15, help="throughput: measurements of each, in turns (15)")
    parser.add_argument("--departures", type=int, default=15, help="stop: callers that leave, of each kind (15)")
    parser.add_argument("--markdown", type=Path, metavar="PAGE", help="put the tables into a page too")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    return options


def measure(options: argparse.Namespace) -> None:
    """Each part in turn; its table is printed as soon as it is there."""
    go_first()
    result: dict[str, Any] = {}
    for name in options.parts or PARTS:
        module = importlib.import_module(f"bench.{PARTS[name]}")  # each loads only what it needs
        result[name] = module.run(options, say)
        told = module.table(result[name])
        if options.markdown is not None:
            marked.put(options.markdown, f"scripts/bench {name}", f"```text\n{told}\n```")
        if not options.json:
            print(told, end="\n\n", flush=True)
    if options.json:
        machine = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version()}
        print(json.dumps({**machine, **result}, indent=2))


def main() -> int:
    """Exit status: 0 measured, 1 something failed or lost data, 130 interrupted."""
    options = arguments()
    try:
        if options.worker:
            print(client_cost.measure(options.worker, options.url, options.chunks, options.mode))
        elif options.profile:
            client_cost.profile(options)
        else:
            measure(options)
    except (BenchError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
