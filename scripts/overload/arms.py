"""The arms: one engine, started three ways, with limits chosen by one rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from overload.capacity import Capacity

LANES = 8
"""``--max-num-seqs`` of every arm: answers that the engine makes at a time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an operator sets.

    ``inflight``: requests at the engine at a time; ``queued``: how many more may wait.
    """

    inflight: int
    queued: int


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to start the server, and what the callers tell it."""

    name: str
    title: str
    shim: bool = False
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    tell_deadline: bool = False


def choose(capacity: Capacity, *, patience: float, spare: int) -> Limits:
    """As many at the engine as it takes and ``spare`` more, so that it never waits for us; as many in the queue as it
    begins with in a third of the time that the least patient caller has.

    Who is let in last then still has two thirds for the answer; and one that is refused once, told to come back in about
    the time that the queue takes, and then waits as long again, is not too late either.
    """
    return Limits(LANES + spare, max(math.floor(patience / 3 * capacity.calls_per_second) - spare, 1))


def arms(limits: Limits) -> dict[str, Arm]:
    """By name.  vLLM counts those at work among its ``queued``, so its limit is the sum of the shim's two."""
    total = str(limits.inflight + limits.queued)
    shim = {"LASTWORD_MAX_INFLIGHT": str(limits.inflight), "LASTWORD_MAX_QUEUED": str(limits.queued)}
    every = (
        Arm("bare", "bare vLLM"),
        Arm("limit", f"vLLM, --max-num-queued-reqs {total}", args=("--max-num-queued-reqs", total)),
        Arm("shim", "vLLM with the shim", shim=True, env=shim),
        Arm("shim-deadline", "the shim, callers say their deadline", shim=True, env=shim, tell_deadline=True),
    )
    return {arm.name: arm for arm in every}
