"""Whether to send a request again, and when; clock, randomness and budget are passed in."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword._classify import ErrorInfo, make_error
from lastword._codes import CODES, Category, Code, RetryRule
from lastword._retry import GiveUp, Retry, RetryBudget, RetryPolicy, decide

OWN_TIMERS = (Code.FIRST_TOKEN_TIMEOUT, Code.GENERATION_STALLED)
RETRIED = [code for code, known in CODES.items() if known.category is Category.RETRYABLE]


def ask(error: ErrorInfo, **given_: Any) -> Retry | GiveUp:
    """The decision after a first attempt with nothing delivered, unless ``given_`` says otherwise."""
    arguments: dict[str, Any] = {
        "attempt": 1,
        "delivered": False,
        "left": math.inf,
        "policy": RetryPolicy(),
        "budget": RetryBudget(None),
        "random": lambda: 0.5,
        **given_,
    }
    return decide(error, **arguments)


def failure(code: str, *, origin: str = "engine", **fields: Any) -> ErrorInfo:
    return make_error(Code(code), "m", origin=origin, **fields)


def unknown(**fields: Any) -> ErrorInfo:
    """A code of a later contract."""
    known = {"code": "brand_new", "category": "retryable", "outcome": "failed", "retryable": True, "message": "m"}
    return ErrorInfo(**{**known, **fields})


@pytest.mark.parametrize("code", list(Code))
@pytest.mark.parametrize("origin", ["engine", "shim", "gateway", "client"])
def test_the_code_decides_whether(code: Code, origin: str) -> None:
    """What the registry calls retryable is retried, but for the client's own timers (RTY-2, RTY-3, RTY-9)."""
    expected = code in RETRIED and not (origin == "client" and code in OWN_TIMERS)
    assert isinstance(ask(failure(code, origin=origin)), Retry) == expected


@pytest.mark.parametrize("code", RETRIED)
def test_attempts_are_counted(code: str) -> None:
    """Up to the policy's maximum, and at most twice where the rule is once (RTY-7)."""
    sent = 1 + sum(isinstance(ask(failure(code), attempt=attempt), Retry) for attempt in range(1, 10))
    assert sent == (2 if CODES[code].retry is RetryRule.ONCE else 3)


@pytest.mark.parametrize(("maximum", "expected"), [(1, GiveUp("1 of 1 attempts made")), (2, Retry(0.25, 5))])
def test_one_attempt_is_no_retry(maximum: int, expected: Retry | GiveUp) -> None:
    """``max_attempts`` counts the first try, also where the rule is once."""
    policy = RetryPolicy(max_attempts=maximum)
    assert ask(failure("internal_server_error"), policy=policy) == expected
    assert ask(failure("engine_unavailable"), policy=policy) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (unknown(), Retry(0.25, 5)),
        (unknown(retryable=False), GiveUp("the server says that a retry does not help")),
        (unknown(category="fixable"), GiveUp("brand_new is not cured by sending the same request again")),
        (unknown(category="cancelled"), GiveUp("brand_new is not cured by sending the same request again")),
    ],
)
def test_a_code_of_a_later_contract_goes_by_its_category(error: ErrorInfo, expected: Retry | GiveUp) -> None:
    """And is never guessed to be retryable (ERR-6)."""
    assert ask(error) == expected


@pytest.mark.parametrize("fields", [{"retryable": False}, {"should_retry": False}])
def test_the_servers_no_is_final(fields: dict[str, Any]) -> None:
    """In the body or in the header (RTY-8)."""
    assert ask(failure("queue_overloaded", **fields)) == GiveUp("the server says that a retry does not help")


def test_what_this_side_would_meet_again_is_not_sent_again() -> None:
    """A certificate that is not trusted, say."""
    error = failure("connection_failed", origin="client", retryable=False)
    assert ask(error) == GiveUp("this is not cured by sending the same request again")


@pytest.mark.parametrize("code", [code for code in Code if code not in RETRIED])
def test_the_servers_yes_alone_is_nothing(code: Code) -> None:
    """What the caller can fix is not sent twice, whatever header says so (RTY-8)."""
    assert isinstance(ask(failure(code, should_retry=True, retryable=True, retry_after=1.0)), GiveUp)


def test_nothing_is_sent_again_once_a_chunk_was_delivered() -> None:
    """The commit point (RTY-1)."""
    assert ask(failure("queue_overloaded"), delivered=True) == GiveUp("part of the answer has been handed over")


@pytest.mark.parametrize(
    ("attempt", "drawn", "hint", "expected"),
    [
        (1, 0.0, None, 0.0),
        (1, 0.5, None, 0.25),
        (2, 0.5, None, 0.5),
        (5, 0.5, None, 4.0),
        (6, 0.5, None, 4.0),
        (5000, 0.5, None, 4.0),
        (1, 0.5, 3.0, 3.0),
        (6, 0.5, 3.0, 4.0),
        (1, 0.5, 0.0, 0.25),
        (1, 0.5, 120.0, 120.0),
    ],
)
def test_delay(attempt: int, drawn: float, hint: float | None, expected: float) -> None:
    """Full jitter that doubles up to ``max_delay``, and never less than the hint (RTY-4, RTY-10)."""
    error = failure("queue_overloaded", retry_after=hint)
    policy = RetryPolicy(max_attempts=10_000)
    assert ask(error, attempt=attempt, random=lambda: drawn, policy=policy) == Retry(expected, 5)


def test_a_hint_beyond_the_limit_ends_the_call() -> None:
    """Waiting for minutes is the caller's decision; the hint is on the error."""
    error = failure("queue_overloaded", retry_after=120.5)
    assert ask(error) == GiveUp("the server asks to wait 120.5 s, more than max_hint allows")


@pytest.mark.parametrize(
    ("left", "hint", "expected"),
    [
        (0.26, None, Retry(0.25, 5)),
        (0.25, None, GiveUp("a wait of 0.25 s would outlast the deadline, 0.25 s away")),
        (-1.0, None, GiveUp("a wait of 0.25 s would outlast the deadline, 0 s away")),
        (5.0, 5.0, GiveUp("a wait of 5 s would outlast the deadline, 5 s away")),
        (5.1, 5.0, Retry(5.0, 5)),
    ],
)
def test_no_wait_outlasts_the_deadline(left: float, hint: float | None, expected: Retry | GiveUp) -> None:
    """The call fails at once instead of waiting in vain (RTY-5)."""
    assert ask(failure("queue_overloaded", retry_after=hint), left=left) == expected


@pytest.mark.parametrize(
    ("code", "cost"),
    [("internal_server_error", 5), ("connect_timeout", 10), ("first_token_timeout", 10), ("generation_stalled", 10)],
)
def test_a_retry_costs_and_one_after_a_timeout_costs_double(code: str, cost: int) -> None:
    """As in the standard mode of AWS SDKs."""
    assert ask(failure(code)) == Retry(0.25, cost)


def test_a_spent_budget_ends_retries_and_success_refills_it() -> None:
    """A success gives back what its retry cost, or 1 if it needed none, and never more than there was."""
    budget = RetryBudget(12)
    error = failure("internal_server_error")
    spent = GiveUp("the client's retry budget is spent")
    assert [ask(error, budget=budget) for _ in range(3)] == [Retry(0.25, 5), Retry(0.25, 5), spent]
    budget.refund(5)
    assert [ask(error, budget=budget) for _ in range(2)] == [Retry(0.25, 5), spent]
    for _ in range(3):
        budget.refund(0)
    assert [ask(error, budget=budget) for _ in range(2)] == [Retry(0.25, 5), spent]
    for _ in range(10):
        budget.refund(10)
    assert [budget.take(12), budget.take(1)] == [True, False]


@pytest.mark.parametrize(("capacity", "expected"), [(None, [True] * 3), (0, [False] * 3), (5, [True, False, False])])
def test_budgets_without_a_limit_and_with_nothing(capacity: int | None, expected: list[bool]) -> None:
    """None is no limit; 0 never retries."""
    budget = RetryBudget(capacity)
    assert [budget.take(5) for _ in range(3)] == expected
    if capacity is None:
        budget.refund(5)


def test_a_refusal_costs_nothing() -> None:
    """Only a retry that is made is paid for."""
    budget = RetryBudget(5)
    for error, arguments in (
        (failure("unauthorized"), {}),
        (failure("queue_overloaded"), {"delivered": True}),
        (failure("queue_overloaded"), {"attempt": 3}),
        (failure("queue_overloaded", retry_after=500.0), {}),
        (failure("queue_overloaded"), {"left": 0.0}),
    ):
        assert isinstance(ask(error, budget=budget, **arguments), GiveUp)
    assert isinstance(ask(failure("queue_overloaded"), budget=budget), Retry)


@pytest.mark.parametrize(
    "values",
    [
        *({"max_attempts": value} for value in (0, -1, 1.5, True, "3", math.inf, None)),
        *({name: value} for name in ("base_delay", "max_delay", "max_hint") for value in (-1, math.nan, math.inf, "1", True)),
        *({"budget": value} for value in (-1, True, "x", 1.5, math.nan)),
    ],
)  # fmt: skip
def test_a_policy_that_makes_no_sense_is_refused(values: dict[str, Any]) -> None:
    """With the name of the field and its value."""
    ((name, value),) = values.items()
    with pytest.raises(ValueError, match=rf"^RetryPolicy\({name}={value!r}\)"):
        RetryPolicy(**values)


@pytest.mark.parametrize(
    "values", [{"base_delay": 0}, {"max_delay": 0.0}, {"max_hint": 0}, {"budget": 0}, {"budget": None}]
)
def test_zero_and_none_are_sensible(values: dict[str, Any]) -> None:
    """No wait, no patience, no budget, no limit."""
    assert isinstance(RetryPolicy(**values), RetryPolicy)


ERRORS = st.builds(
    failure,
    st.sampled_from(sorted(CODES)),
    origin=st.sampled_from(["client", "engine", "gateway", "shim"]),
    retry_after=st.none() | st.floats(0, 1e308),
    should_retry=st.none() | st.booleans(),
)
UNKNOWN = st.builds(
    unknown,
    category=st.sampled_from(sorted(Category)),
    retryable=st.booleans(),
    retry_after=st.none() | st.floats(0, 300),
)
POLICIES = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 6),
    base_delay=st.floats(0, 1e300),
    max_delay=st.floats(0, 1e300),
    max_hint=st.floats(0, 1e300),
)


@given(
    ERRORS | UNKNOWN,
    st.integers(1, 8),
    st.booleans(),
    st.floats(-10, 1e9) | st.just(math.inf),
    POLICIES,
    st.floats(0, 0.999),
)
def test_no_retry_breaks_a_rule(
    error: ErrorInfo, attempt: int, delivered: bool, left: float, policy: RetryPolicy, drawn: float
) -> None:
    """Never after delivery, before the hint, past the deadline or the policy; what is fixable never twice."""
    decision = ask(error, attempt=attempt, delivered=delivered, left=left, policy=policy, random=lambda: drawn)
    if isinstance(decision, Retry):
        assert not delivered
        assert decision.delay >= (error.retry_after or 0)
        assert 0 <= decision.delay < left
        assert decision.delay <= max(policy.max_delay, error.retry_after or 0)
        assert (error.retry_after or 0) <= policy.max_hint
        assert attempt < policy.max_attempts
        assert error.category == Category.RETRYABLE
        assert error.retryable
        assert error.should_retry is not False


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0, 5, 10])), max_size=60), st.integers(0, 30))
def test_a_budget_is_never_overdrawn_nor_overfilled(steps: list[tuple[bool, int]], capacity: int) -> None:
    """Whatever is taken and given back in whatever order."""
    budget = RetryBudget(capacity)
    left = capacity
    for takes, cost in steps:
        if takes:
            assert budget.take(cost) == (left >= cost)
            left -= cost if left >= cost else 0
        else:
            budget.refund(cost)
            left = min(capacity, left + (cost or 1))
