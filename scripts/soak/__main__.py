#!/usr/bin/env python3
"""Many streams at once, a third of them dropped at random points, round after round: what is left of them in the shim?

Each round opens all streams, waits until every one has reached the engine (or, with --inflight, as many as are let in),
and lets callers leave: before the first token, after some, in the middle of an event, with an orderly end or a reset. Then
there must be one record for each, saying what its caller did; no open exchange, task or descriptor more than before; metrics
that add up to the records; and from the second round on no growth of memory.

    make soak                                        1,000 streams, 3 rounds: half a minute
    make soak SOAK="--streams 2000 --rounds 20"      longer
    make soak SOAK=--sidecar                         through the sidecar
    make soak SOAK="--inflight 100"                  most of them wait in the shim's queue
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from soak import balance
from soak.served import more_files
from soak.streams import Plan, plans, play

SCRIPTS = Path(__file__).resolve().parents[1]
OBJECTS = 300
"""Growth that is no growth: fewer than one object for each three streams of a round of a thousand."""
RESIDENT = 4 * 1024 * 1024


class Server:
    """The server's process, and the lines to and from it."""

    def __init__(self, process: subprocess.Popen[str], records: Path) -> None:
        self._process = process
        self._records = records
        self._read = 0
        self.port: int = self._answer()["port"]

    def order(self, **what: Any) -> dict[str, Any]:
        """Say one line, and read the answer.

        Raises:
            RuntimeError: the server has ended.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the server has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def new_records(self) -> list[dict[str, Any]]:
        """Those since the last time."""
        lines = self._records.read_text(encoding="utf-8").splitlines()
        new, self._read = lines[self._read :], len(lines)
        return [json.loads(line) for line in new]


@contextmanager
def engine(options: argparse.Namespace) -> Iterator[str]:
    """A bare embedded engine in a process of its own; its URL."""
    argv = [sys.executable, "-m", "lastword_shim.engine.embedded", "--bare", "--port", "0", "--until-stdin-closes"]
    argv += ["--pace", str(options.pace)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1].removesuffix("/v1")
        assert process.stdin is not None
        process.stdin.close()


@contextmanager
def served(options: argparse.Namespace) -> Iterator[Server]:
    """Start the server; it ends when its standard input does."""
    with tempfile.TemporaryDirectory(prefix="lastword-soak-") as folder, ExitStack() as stack:
        records = Path(folder) / "records.jsonl"
        upstream = stack.enter_context(engine(options)) if options.sidecar else None
        argv = [sys.executable, "-m", "soak.served", "--records", str(records), "--pace", str(options.pace)]
        argv += ["--inflight", str(options.inflight), "--queued", str(options.streams)] if options.inflight else []
        argv += ["--upstream", upstream] if upstream else []
        argv += ["--settle", str(options.settle), *(["--plant"] if options.plant else [])]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=SCRIPTS) as process:
            try:
                yield Server(process, records)
            finally:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()


def play_round(server: Server, every: list[Plan], options: argparse.Namespace) -> tuple[list[str], int]:
    """One round; sentences on broken streams, and how many requests were open when all were in."""
    open_at_once = 0

    async def all_in(may_leave: asyncio.Event) -> None:
        nonlocal open_at_once
        open_at_once = (await asyncio.to_thread(server.order, full=len(every)))["open"]
        may_leave.set()
        await asyncio.sleep(0.3)  # those that leave before the first token do so now
        await asyncio.to_thread(server.order, go=True)

    server.order(gate=min(options.inflight or len(every), len(every)))
    broken = asyncio.run(play(every, server.port, tokens=options.tokens, when_all_are_in=all_in))
    return broken, open_at_once


def soak(options: argparse.Namespace) -> dict[str, Any]:
    """All rounds: what was looked at after each, and what is wrong."""
    more_files()
    wrong: list[str] = []
    looks: list[dict[str, Any]] = []
    with served(options) as server:
        play_round(
            server, plans(options.seed, 0, streams=max(options.streams // 20, 3), tokens=options.tokens), options
        )
        baseline = before = server.order(look=True)
        server.new_records()
        for number in range(1, options.rounds + 1):
            started = time.monotonic()
            every = plans(options.seed, number, streams=options.streams, tokens=options.tokens)
            broken, open_at_once = play_round(server, every, options)
            look = server.order(look=True)
            records = server.new_records()
            generated = None if options.sidecar else look["generated"] - before["generated"]
            wrong += [f"round {number}: {said}" for said in broken]
            if open_at_once != len(every):
                wrong.append(f"round {number}: {open_at_once} of {len(every)} requests were open at once")
            wrong += [f"round {number}: {said}" for said in balance.of_records(every, records)]
            metrics = balance.of_metrics(records, before["metrics"], look["metrics"], generated=generated)
            wrong += [f"round {number}: {said}" for said in [*metrics, *balance.of_process(look, baseline)]]
            before = look
            looks.append({name: value for name, value in look.items() if name != "metrics"})
            looks[-1] |= {"records": len(records), "seconds": round(time.monotonic() - started, 1)}
            looks[-1] |= {"left": sum(record["client_disconnected"] for record in records)}
            print(f"round {number} of {options.rounds}: {looks[-1]}", file=sys.stderr, flush=True)
    if options.rounds > 2:
        wrong += balance.of_memory(looks, objects=OBJECTS, resident=RESIDENT)
    return {"streams": options.streams, "seed": options.seed, "rounds": looks, "wrong": wrong}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1000, help="at once (1000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; memory is compared from the third on (3)")
    parser.add_argument("--tokens", type=int, default=8, help="tokens of an answer (8)")
    parser.add_argument("--pace", type=float, default=0.2, help="seconds that a token takes (0.2)")
    parser.add_argument(
        "--sidecar", action="store_true", help="the sidecar in front of the engine, and not the middleware"
    )
    parser.add_argument("--inflight", type=int, help="LASTWORD_MAX_INFLIGHT; the rest waits in the shim's queue")
    parser.add_argument("--seed", type=int, default=1, help="of who leaves, and where (1)")
    parser.add_argument("--settle", type=float, default=10.0, help="most seconds until all is as before (10)")
    parser.add_argument("--plant", action="store_true", help="a server that leaves things behind, which must be found")
    parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")
    return parser.parse_args()


def main() -> int:
    """Exit status: 0 nothing is left behind, 1 something is, 2 the server ended, 130 interrupted."""
    options = arguments()
    try:
        result = soak(options)
    except RuntimeError as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    wrong = result["wrong"]
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        said = wrong[:20] or [f"{options.rounds} rounds of {options.streams} streams left nothing but their records"]
        print("\n".join(said))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
