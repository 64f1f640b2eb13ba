"""Whether to send a request again, and when.  Pure: budget, clock and randomness are passed in.

The decision goes by the contract's code, never by HTTP status or exception class (the RTY rules).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, assert_never

from lastword._classify import ErrorInfo
from lastword._codes import CODES, Category, Code, RetryRule

_TIMEOUT_CODES: Final = frozenset({Code.CONNECT_TIMEOUT, Code.FIRST_TOKEN_TIMEOUT, Code.GENERATION_STALLED})
_COST: Final = 5
_TIMEOUT_COST: Final = 10
_REFUND: Final = 1
_NOT_CURED: Final = "{} is not cured by sending the same request again"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently to retry.

    ``max_attempts`` counts the first try.  Waits are drawn from 0 to ``min(max_delay, base_delay × 2ⁿ)`` seconds (full
    jitter) and are never shorter than the server's hint; a hint above ``max_hint`` seconds ends the call.  ``budget`` is
    shared by all calls of a client: a retry costs 5 of it, 10 after a timeout, and a success gives back 1 or what its
    retry cost (the token bucket of AWS SDKs' standard mode); None is no limit.
    """

    max_attempts: int = 3
    base_delay: float = 0.5
    max_delay: float = 8.0
    max_hint: float = 120.0
    budget: int | None = 500

    def __post_init__(self) -> None:
        for name, whole in (("max_attempts", True), ("base_delay", False), ("max_delay", False), ("max_hint", False)):
            value: object = getattr(self, name)
            kinds = int if whole else int | float
            if isinstance(value, bool) or not isinstance(value, kinds) or not whole <= value < math.inf:
                wanted = "1 (no retry) or more" if whole else "seconds, 0 or more"
                raise ValueError(f"RetryPolicy({name}={value!r}): give {wanted}")
        budget: object = self.budget
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 0):
            raise ValueError(f"RetryPolicy(budget={self.budget!r}): give 0 or more, or None for no limit")


class RetryBudget:
    """Retries that a client may still spend over all its calls; safe to share between threads."""

    def __init__(self, capacity: int | None) -> None:
        self._capacity = capacity
        self._left = capacity or 0
        self._lock = threading.Lock()

    def take(self, cost: int) -> bool:
        """Spend ``cost`` if there is enough."""
        if self._capacity is None:
            return True
        with self._lock:
            if self._left < cost:
                return False
            self._left -= cost
            return True

    def refund(self, cost: int) -> None:
        """A call succeeded; ``cost`` is what its last retry took, 0 if it needed none."""
        if self._capacity is not None:
            with self._lock:
                self._left = min(self._capacity, self._left + (cost or _REFUND))


@dataclass(frozen=True, slots=True)
class Retry:
    """Send it again after ``delay`` seconds; ``cost`` was taken from the budget."""

    delay: float
    cost: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Do not send it again; ``reason`` says why in words."""

    reason: str


def decide(
    error: ErrorInfo,
    *,
    attempt: int,
    delivered: bool,
    left: float,
    policy: RetryPolicy,
    budget: RetryBudget,
    random: Callable[[], float],
) -> Retry | GiveUp:
    """Decide after attempt number ``attempt`` (1, 2, …) met ``error``.

    ``delivered``: a chunk has reached the caller (the commit point, RTY-1).  ``left``: seconds until the call's deadline,
    ``math.inf`` without one.  ``random`` returns a float in [0, 1).
    """
    if delivered:
        return GiveUp("part of the answer has been handed over")
    refusal = _refusal(error, attempt, policy)
    if refusal is not None:
        return GiveUp(refusal)
    hint = error.retry_after or 0.0
    if hint > policy.max_hint:
        return GiveUp(f"the server asks to wait {hint:g} s, more than max_hint allows")
    delay = max(hint, random() * min(policy.max_delay, policy.base_delay * 2 ** min(attempt - 1, 32)))
    if delay >= left:
        return GiveUp(f"a wait of {delay:.3g} s would outlast the deadline, {max(left, 0):.3g} s away")
    cost = _TIMEOUT_COST if error.code in _TIMEOUT_CODES else _COST
    if not budget.take(cost):
        return GiveUp("the client's retry budget is spent")
    return Retry(delay, cost)


def _refusal(error: ErrorInfo, attempt: int, policy: RetryPolicy) -> str | None:
    known = CODES.get(error.code)
    if known is None:  # ERR-6: only the category of the body may speak for a code nobody here knows
        rule = RetryRule.LIMITED if error.category == Category.RETRYABLE else RetryRule.NEVER
    else:
        rule = known.retry_own_timer if error.origin == "client" else known.retry
    limit = policy.max_attempts
    match rule:
        case RetryRule.NEVER | RetryRule.CALLER:
            return _NOT_CURED.format(error.code)
        case RetryRule.ONCE:
            limit = min(limit, 2)
        case RetryRule.AFTER_HINT | RetryRule.BACKOFF | RetryRule.LIMITED | RetryRule.IF_UNDELIVERED:
            pass
        case _:
            assert_never(rule)
    if not error.retryable and error.origin == "client":
        return _NOT_CURED.format("this")
    if not error.retryable or error.should_retry is False:
        return "the server says that a retry does not help"
    return f"{attempt} of {limit} attempts made" if attempt >= limit else None
