"""One arm played once: the server's start, a warm-up that measures it, the trace, and the engine's counters round that."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.live.vllm_server import VllmServer

from overload import capacity
from overload.account import COUNTERS, account, own_records
from overload.arms import LANES, Arm
from overload.callers import Attempt, Target, play
from overload.calls import Call
from overload.capacity import Capacity

EVERY = 15.0
"""Seconds between two lines of progress."""
WARM_UP_SEED = 0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Played:
    """What one arm left: its account, every attempt, and the shim's records (none without it)."""

    account: dict[str, Any]
    attempts: list[Attempt]
    records: list[dict[str, Any]]


@contextmanager
def served(arm: Arm, paths: Mapping[str, str], say: Say) -> Iterator[VllmServer]:
    """Start the arm's server; it is ended with everything that it started, whatever happens.

    Raises:
        RuntimeError: it did not start.
    """
    with tempfile.TemporaryDirectory(prefix="lastword-overload-") as folder:
        args = ("--max-num-seqs", str(LANES), *arm.args)
        server = VllmServer(paths, Path(folder), shim=arm.shim, args=args, env=arm.env)
        try:
            say(f"{arm.name}: starting {arm.title}")
            server.wait_ready(lambda _: None)
            server.step_back()  # the callers stand for other machines
            yield server
        finally:
            left = server.stop(gently=False)
            if left:
                say(left)


def calibrate(server: VllmServer, seconds: float) -> Capacity:
    """The engine's capacity in this arm, with the same calls in each."""
    measured = asyncio.run(capacity.measure(Target(server.port), lanes=LANES, seconds=seconds, seed=WARM_UP_SEED))
    server.wait_idle()
    return measured


def run(arm: Arm, calls: Sequence[Call], paths: Mapping[str, str], *, warm_up: float, say: Say) -> Played:
    """Play the trace to a server of its own."""
    with served(arm, paths, say) as server:
        before_trace = calibrate(server, warm_up)
        skipped = len(server.records())
        before = counters(server)
        progress = Progress(arm.name, len(calls), say)
        target = Target(server.port, arm.tell_deadline)
        attempts, looked = asyncio.run(
            play_and_look(
                calls, target, progress.note, lambda: server.metric(COUNTERS["generated"]) - before["generated"]
            )
        )
        server.wait_idle(timeout=60)
        rose = {name: value - before[name] for name, value in counters(server).items()}
        seconds = progress.seconds
        expected = len(attempts) if arm.shim else 0
        records = server.wait_records(skipped + expected)[skipped:] if arm.shim else []
    column = account(calls, attempts, rose)
    column |= {"calls_per_second_before": round(before_trace.calls_per_second, 2)}
    column |= {"seconds": round(seconds, 1), **looked, "engine": rose}
    if arm.shim:
        column["own_records"] = own_records(records, lanes=LANES)
    say(f"{arm.name}: {column['completed_in_time']} completed in time, {column['wasted_tokens']:,} tokens wasted")
    return Played(column, attempts, records)


async def play_and_look(
    calls: Sequence[Call], target: Target, note: Callable[[Attempt], None], generated: Callable[[], float]
) -> tuple[list[Attempt], dict[str, float]]:
    """Play the trace; the second of the two is what ``generated`` said when the last call came, and the seconds until then.

    After that the engine has less and less to do, in each arm for another time, so its pace is taken until then.
    """
    began = time.monotonic()
    last = max((call.at for call in calls), default=0.0)

    async def look() -> dict[str, float]:
        await asyncio.sleep(began + last - time.monotonic())
        tokens = await asyncio.to_thread(generated)
        return {"generated_while_calls_came": tokens, "seconds_while_calls_came": round(time.monotonic() - began, 3)}

    attempts, looked = await asyncio.gather(play(calls, target, note), look())
    return attempts, looked


def counters(server: VllmServer) -> dict[str, float]:
    """The engine's counters now."""
    return {name: server.metric(metric) for name, metric in COUNTERS.items()}


class Progress:
    """Says now and then how far it is."""

    def __init__(self, name: str, calls: int, say: Say) -> None:
        self._name, self._calls, self._say = name, calls, say
        self._endings: Counter[str] = Counter()
        self._began = self._said = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    def note(self, attempt: Attempt) -> None:
        """An attempt has ended."""
        self._endings[attempt.ending] += 1
        now = time.monotonic()
        if now >= self._said + EVERY:
            self._said = now
            said = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in self._endings.most_common())
            self._say(f"{self._name}: {self.seconds:3.0f} s; attempts so far: {said} (of {self._calls} calls)")


def plain(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Dataclasses as they are written down."""
    return [asdict(row) for row in rows]
