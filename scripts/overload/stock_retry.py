"""When and after which pause stock SDKs try again: the rules of openai-python 3.57, `_base_client.py`, without its client.

Pure.  The Anthropic SDK has the same ones.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

RETRIES = 2
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0
LONGEST_HINT = 120.0


def hint(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks for, in milliseconds or seconds; dates are not looked at."""
    for name, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return float(headers[name]) / divisor
        except (KeyError, ValueError):
            continue
    return None


def tries_again(status: int, headers: Mapping[str, str]) -> bool:
    """Whether an error answer is worth another attempt."""
    asked = hint(headers)
    if asked is not None and asked > LONGEST_HINT:
        return False
    said = headers.get("x-should-retry")
    if said in ("true", "false"):
        return said == "true"
    return status in (408, 409, 429) or status >= 500


def pause(attempt: int, headers: Mapping[str, str], chance: random.Random) -> float:
    """Seconds to wait after attempt number ``attempt``, from 1; ``headers`` are empty where nothing was answered."""
    asked = hint(headers)
    if asked is not None and 0 < asked <= LONGEST_HINT:
        return asked
    longest: float = min(FIRST_PAUSE * 2.0 ** (attempt - 1), LONGEST_PAUSE)
    return longest * (1 - 0.25 * chance.random())
