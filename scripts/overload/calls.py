"""The calls of the experiment: when each comes, what it asks for, how long its caller waits.  All drawn from a seed.

Pure.  A trace is a list of `Call`; the same one is played to every arm.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

PROMPT_TOKENS = (120, 0.8, 16, 800)  # median, sigma of the logarithm, least, most
ANSWER_TOKENS = (350, 0.6, 32, 800)
STREAMED = 0.6
PATIENCE = {"alike": (1.0,), "mixed": (0.6, 1.0, 1.6)}
"""Kinds of callers by name: of one application, whose timeout is one setting; or of three, which wait for that much of it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one user.

    Attributes:
        number: from 0, in order of arrival.
        at: seconds from the trace's start.
        stream: whether it asks for a stream.
        prompt_tokens: bytes of text, which are the tiny model's tokens (its chat template adds some).
        answer_tokens: tokens that the answer has.
        timeout: seconds that the caller gives each attempt, as stock SDKs' `timeout` does.
        luck: seeds the jitter of this call's pauses.
    """

    number: int
    at: float
    stream: bool
    prompt_tokens: int
    answer_tokens: int
    timeout: float
    luck: int


def draw(seed: int, *, rate: float, seconds: float, patience: float, callers: str = "alike") -> list[Call]:
    """Calls that come independently of each other (Poisson) for ``seconds``, ``rate`` of them a second on average.

    ``patience`` is the usual timeout in seconds, ``callers`` a name in `PATIENCE`.  The n-th call asks for the same
    whatever the rate is.
    """
    chance = random.Random(seed)
    calls: list[Call] = []
    at = 0.0
    while True:
        at += chance.expovariate(1.0) / rate
        call = Call(
            number=len(calls),
            at=at,
            stream=chance.random() < STREAMED,
            prompt_tokens=_length(chance, *PROMPT_TOKENS),
            answer_tokens=_length(chance, *ANSWER_TOKENS),
            timeout=round(patience * chance.choice(PATIENCE[callers]), 3),
            luck=chance.getrandbits(32),
        )
        if at >= seconds:
            return calls
        calls.append(call)


def _length(chance: random.Random, median: float, sigma: float, least: int, most: int) -> int:
    return round(min(max(chance.lognormvariate(math.log(median), sigma), least), most))
