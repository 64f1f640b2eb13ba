"""The server of the soak, in a process of its own: the shim round the embedded engine, or the sidecar in front of one.

It is told what to do, and tells what is left in it, by lines of JSON on its standard input and output:

    {"gate": N}      hold all requests that reach the engine, and expect N of them
    {"full": M}      once these have, and M requests are open: how many are
    {"go": true}     let the engine answer
    {"look": true}   once it has settled, or after a while: open exchanges, tasks, descriptors, memory, metrics
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from lastword_shim import Settings, Shim
from lastword_shim.engine.embedded import EmbeddedEngine
from lastword_shim.protocol.wire import App, Message, Receive, Scope, Send

FILES = 8192
STILL = 20
"""Looks, a second in all."""
POOLED_FOR = 0.5
"""Seconds that the sidecar keeps an idle connection to its upstream."""


class Gate:
    """Round the engine, inside of the shim: holds requests back until so many have come, then until it is told to go."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._expected = 0
        self.full = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()

    def close(self, expected: int) -> None:
        """Hold from now on."""
        self._expected = expected
        self.full.clear()
        self.go.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI 3."""
        if scope["type"] != "http" or self.go.is_set():
            await self._app(scope, receive, send)
            return
        asked = [await receive()]  # by now the shim has let it in
        self._expected -= 1
        if self._expected <= 0:
            self.full.set()
        go, left = asyncio.ensure_future(self.go.wait()), asyncio.ensure_future(receive())
        await asyncio.wait({go, left}, return_when=asyncio.FIRST_COMPLETED)
        go.cancel()

        async def replay() -> Message:
            return asked.pop() if asked else await left

        if not left.done():
            await self._app(scope, replay, send)


PLANTED: list[Any] = []


def planted(app: App) -> App:
    """A server that leaves memory, a task and a descriptor of each request behind, to prove that the soak finds them."""

    async def leaving(scope: Scope, receive: Receive, send: Send) -> None:
        PLANTED.append([dict(scope) for _ in range(5)])
        PLANTED.append(asyncio.ensure_future(asyncio.Event().wait()))
        PLANTED.append(os.dup(0))
        await app(scope, receive, send)

    return leaving


class Observed:
    """One shim and its server: what is left in this process.  ``engine`` gives (requests at work, tokens made) there."""

    def __init__(self, shim: Shim, gate: Gate, engine: Callable[[], tuple[int, int]], *, settle: float) -> None:
        self.shim = shim
        self.gate = gate
        self.engine = engine
        self._baseline: tuple[int, int] | None = None
        self._fewest: int | None = None
        self._seen: list[tuple[int, int]] = []
        self._settle = settle

    async def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        """Do what the line says."""
        if "gate" in order:
            self.gate.close(order["gate"])
            return {}
        if "full" in order:
            await self.gate.full.wait()
            await self._until(lambda: self._open() >= order["full"])
            return {"open": self._open()}
        if "go" in order:
            self.gate.go.set()
            return {}
        return await self._look()

    def _open(self) -> int:
        core = self.shim._core
        assert core is not None
        return len(core.register)

    def _left(self) -> tuple[int, int]:
        return len(asyncio.all_tasks()), len(os.listdir("/dev/fd"))

    def _is_still(self) -> bool:
        """Whether as much is left as it has been for a while: a pool closes what nobody uses a little later."""
        self._seen = [*self._seen[-STILL:], self._left()]
        return not self._open() and len(self._seen) > STILL and len(set(self._seen)) == 1

    async def _until(self, condition: Callable[[], bool], *, within: float | None = None) -> None:
        """Wait for it, but not for ever: what is then is told."""
        deadline = time.monotonic() + (within or self._settle)
        while not condition() and time.monotonic() < deadline:  # noqa: ASYNC110 (nobody tells when it has settled)
            await asyncio.sleep(0.05)

    async def _objects(self) -> int:
        """Python's objects once there are no fewer any more: the event loop lets go of what has ended a little later."""
        fewest: list[int] = []

        def settled() -> bool:
            gc.collect()
            fewest.append(len(gc.get_objects()))
            return self._fewest is not None and fewest[-1] <= self._fewest

        await self._until(settled, within=min(1.0, self._settle))
        self._fewest = min(fewest) if self._fewest is None else min(self._fewest, *fewest)
        return min(fewest)

    async def _look(self) -> dict[str, Any]:
        core = self.shim._core
        assert core is not None
        if self._baseline is None:
            await self._until(self._is_still)
        await self._until(lambda: not self._open() and self._baseline in {None, self._left()})
        await core.recorder.drained(self._settle)
        objects = await self._objects()
        running, generated = await asyncio.to_thread(self.engine)
        tasks, descriptors = self._left()
        self._baseline = self._baseline or (tasks, descriptors)
        return {
            "open": self._open(),
            "inside": core.places.inside,
            "waiting": core.places.waiting,
            "tasks": tasks,
            "descriptors": descriptors,
            "objects": objects,
            "resident": resident(),
            "running": running,
            "generated": generated,
            "metrics": generate_latest().decode(),
        }


def resident() -> int | None:
    """Bytes of memory that this process has; None where the system does not tell it cheaply."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except OSError:
        return None


def more_files() -> None:
    """Let this process have as many open files as it may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def embedded(options: argparse.Namespace, settings: Settings) -> tuple[Shim, Gate, Callable[[], tuple[int, int]]]:
    """The shim round an engine in this process."""
    engine = EmbeddedEngine(pace=options.pace)
    gate = Gate(engine)
    return Shim(gate, settings=settings), gate, lambda: (engine.running, engine.generation_tokens)


def sidecar(upstream: str, settings: Settings) -> tuple[Shim, Gate, Callable[[], tuple[int, int]]]:
    """The shim round its own proxy, in front of the engine at that URL."""
    from lastword_shim.sidecar.address import Address
    from lastword_shim.sidecar.engine import HttpEngine
    from lastword_shim.sidecar.health import Health
    from lastword_shim.sidecar.pool import Pool
    from lastword_shim.sidecar.proxy import Proxy

    pool = Pool(Address.parse(upstream), connect_timeout=5, keep_alive=POOLED_FOR, tls=None)
    health = Health(pool)
    gate = Gate(Proxy(pool, health))

    def count() -> tuple[int, int]:
        with urllib.request.urlopen(f"{upstream}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
        names = ("vllm:num_requests_running", "vllm:generation_tokens_total")
        found = {each.name: each.value for family in text_string_to_metric_families(text) for each in family.samples}
        running, generated = (int(found[name]) for name in names)
        return running, generated

    return Shim(gate, settings=settings, engine=HttpEngine(health)), gate, count


async def serve(options: argparse.Namespace) -> None:
    """Serve until standard input ends."""
    settings = Settings(records=options.records, max_inflight=options.inflight, max_queued=options.queued)
    made = sidecar(options.upstream, settings) if options.upstream else embedded(options, settings)
    shim, gate, engine = made
    app = planted(shim) if options.plant else shim
    config = uvicorn.Config(app, port=0, log_level="warning", access_log=False, backlog=4096)
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110 (uvicorn has no event for it)
        await asyncio.sleep(0.01)
    say({"port": server.servers[0].sockets[0].getsockname()[1]})
    observed = Observed(shim, gate, engine, settle=options.settle)
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        say(await observed.answer(json.loads(line)))
    server.should_exit = True
    await serving


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", required=True)
    parser.add_argument("--pace", type=float, required=True)
    parser.add_argument("--upstream")
    parser.add_argument("--inflight", type=int)
    parser.add_argument("--queued", type=int)
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--settle", type=float, required=True)
    options = parser.parse_args()
    more_files()
    import uvloop

    uvloop.run(serve(options))


if __name__ == "__main__":
    main()
