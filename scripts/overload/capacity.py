"""How much the engine can take: calls of the same kind, always as many at a time as it runs, none of which gives up."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass, replace

from overload.callers import Attempt, Target, try_once
from overload.calls import draw

ENDLESS = 600.0


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one engine does at its best.

    Attributes:
        calls_per_second: whole answers a second.
        tokens_per_second: their tokens.
        service: seconds that an answer takes on average while as many run as the engine takes.
    """

    calls_per_second: float
    tokens_per_second: float
    service: float


async def measure(target: Target, *, lanes: int, seconds: float, seed: int) -> Capacity:
    """Keep ``lanes`` calls at work for ``seconds``, after as many of them to warm up.

    Raises:
        RuntimeError: a call did not complete, or too few did.
    """
    source = draw(seed, rate=1.0, seconds=1e5, patience=ENDLESS)
    numbers = itertools.count()
    done: list[tuple[float, Attempt]] = []
    started = time.monotonic()
    ends = started + seconds

    async def lane() -> None:
        while time.monotonic() < ends:
            call = replace(source[next(numbers)], timeout=ENDLESS)
            attempt, _ = await try_once(call, target, 1, started)
            if attempt.ending != "completed":
                raise RuntimeError(f"a call ended as {attempt.ending} ({attempt.error}) while nothing was overloaded")
            done.append((time.monotonic(), attempt))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(lanes):
                group.create_task(lane())
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
    # The first of each lane meet an engine that is filling up, the last one that is running empty.
    settled = [(at, attempt) for at, attempt in done if at <= ends][lanes:]
    if len(settled) < lanes:
        raise RuntimeError(f"only {len(done)} calls were answered in {seconds:.0f} s; measure for longer")
    first = sorted(at for at, _ in done)[lanes - 1]
    span = ends - first
    return Capacity(
        calls_per_second=len(settled) / span,
        tokens_per_second=sum(attempt.tokens for _, attempt in settled) / span,
        service=sum(attempt.seconds for _, attempt in settled) / len(settled),
    )
