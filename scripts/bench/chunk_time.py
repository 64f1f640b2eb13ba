"""What the shim adds to a chunk on its way: seconds from the application's send to the server's, for every chunk.

A scripted application streams chunks as vLLM writes them, at an engine's pace, through uvicorn on a real socket. Inside of
the shim and outside of it stands a clock; what lies between the two is the shim's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import statistics
import time
from collections.abc import AsyncIterator
from typing import Any

import uvicorn

from bench import BenchError
from bench.client_cost import Say
from bench.server import event_data
from lastword_shim import Settings, Shim
from lastword_shim.protocol.wire import App, Message, Receive, Scope, Send
from overload.callers import Target, try_once
from overload.calls import Call

LOADS = {1: 2000, 64: 200}
"""Streams at once, and chunks of each."""
PACE = 0.004


class Clocks:
    """A clock on either side of the shim; ``added`` has the seconds of each chunk."""

    def __init__(self) -> None:
        self.added: list[float] = []

    def inside(self, app: App) -> App:
        """The clock that starts as the application sends a chunk."""

        async def timed(scope: Scope, receive: Receive, send: Send) -> None:
            async def stamp(message: Message) -> None:
                scope["bench.clock"].append(time.perf_counter())
                await send(message)

            await app(scope, receive, stamp if scope["type"] == "http" else send)

        return timed

    def outside(self, app: App) -> App:
        """The clock that stops as the server is handed it."""

        async def timed(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            clock: list[float] = []

            async def read(message: Message) -> None:
                if message["type"] == "http.response.body" and clock:
                    self.added.append(time.perf_counter() - clock[-1])
                    clock.clear()
                await send(message)

            await app({**scope, "bench.clock": clock}, receive, read)

        return timed


async def scripted(scope: Scope, receive: Receive, send: Send) -> None:
    """An engine that streams as many chunks as it is asked for, at its pace."""
    if scope["type"] != "http":
        return
    asked = await receive()
    chunks = int(asked["body"].partition(b'"max_tokens": ')[2].partition(b",")[0])
    headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    due = time.perf_counter()
    for data in event_data(chunks):
        due += PACE
        await asyncio.sleep(max(due - time.perf_counter(), 0))
        await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@contextlib.asynccontextmanager
async def served(clocks: Clocks) -> AsyncIterator[int]:
    """The application on a socket of its own; yields its port."""
    app = clocks.outside(Shim(clocks.inside(scripted), settings=Settings()))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", access_log=False, lifespan="off"))
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110 (uvicorn has no event for it)
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


async def measure(streams: int, chunks: int) -> list[float]:
    """Microseconds added to each chunk.

    Raises:
        BenchError: a stream was not whole.
    """
    clocks = Clocks()
    async with served(clocks) as port:
        calls = [Call(number, 0.0, True, 16, chunks, 120.0, number) for number in range(streams)]
        ended = await asyncio.gather(*(try_once(call, Target(port), 1, time.monotonic()) for call in calls))
    if any(attempt.tokens != chunks for attempt, _ in ended):
        raise BenchError("a stream did not complete")
    return [seconds * 1e6 for seconds in clocks.added]


def run(options: argparse.Namespace, say: Say) -> dict[str, Any]:
    """For each load the microseconds that were added: median, 99th of a hundred, most."""
    logging.getLogger("lastword_shim").setLevel(logging.ERROR)
    import uvloop

    result = {}
    for streams, chunks in LOADS.items():
        added = sorted(uvloop.run(measure(streams, chunks)))
        at_99 = added[int(0.99 * len(added))]
        found = {"p50": statistics.median(added), "p99": at_99, "max": added[-1]}
        result[str(streams)] = {"chunks": len(added), **{name: round(value, 1) for name, value in found.items()}}
        say(f"chunk: {streams} streams measured")
    return result


def table(result: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{'µs added a chunk':18} {'chunks':>8} {'p50':>8} {'p99':>8} {'max':>8}"]
    for streams, found in result.items():
        numbers = " ".join(f"{found[name]:8.1f}" for name in ("p50", "p99", "max"))
        lines.append(f"{streams + ' streams':18} {found['chunks']:8,} {numbers}")
    return "\n".join(lines)
