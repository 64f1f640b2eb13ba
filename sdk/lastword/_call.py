"""One call over all its attempts: what was met, whether to go on, and the last word.  It waits for nothing itself."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import tenacity

from lastword._classify import MAX_RAW, ErrorInfo, classify_response, make_error, request_id_of
from lastword._codes import Code, Profile
from lastword._completeness import StreamTracker, WireEnd
from lastword._deadline import CODE_OF, WAITED_FOR, Deadline
from lastword._errors import LastwordError, error_of, outcome_of
from lastword._outcome import Attempt, Outcome
from lastword._request import Prepared
from lastword._retry import GiveUp, Retry, RetryBudget, RetryPolicy, decide
from lastword._transport._guard import Guard
from lastword._transport._httpx import Met, meaning, refused_the_certificate, was_reset

MAX_ERROR_BODY = 1 << 20
"""How much of the body of an answer that is no stream or no success is read, in bytes."""


@dataclass(slots=True)
class Answer:
    """The head of the answer at hand."""

    status: int
    headers: Mapping[str, str]


@dataclass(slots=True)
class Call:
    """The state that sync and async calls share."""

    request: Prepared
    deadline: Deadline
    guard: Guard
    policy: RetryPolicy
    budget: RetryBudget
    profile: Profile | None
    attempts: list[Attempt] = field(default_factory=list)
    answer: Answer | None = None
    tracker: StreamTracker = field(default_factory=StreamTracker)
    delivered: bool = False
    _attempt_started: tuple[float, float] = (0.0, 0.0)
    _retry: Retry | None = None
    _noted: bool = True  # whether the attempt at hand has been written down

    def begin_attempt(self) -> dict[str, str]:
        """A new attempt; returns its headers (HDR-1 to HDR-3)."""
        self.guard.attempt()
        self._attempt_started = time.time(), time.monotonic()
        self._noted = False
        self.answer = None
        self.tracker = StreamTracker(expected_choices=self.request.choices, profile=self.profile)
        headers = {**self.request.headers, "x-request-attempt": str(len(self.attempts) + 1)}
        left = self.deadline.left(time.monotonic())
        if left != float("inf"):
            headers["request-timeout-ms"] = str(max(1, round(left * 1000)))
        return headers

    @property
    def request_id(self) -> str:
        """The server's word on the request id, else ours."""
        return (self.answer and request_id_of(self.answer.headers)) or self.request.request_id

    @property
    def is_refused(self) -> bool:
        """Whether the head of the answer has said no already: a body that breaks off then takes nothing from it."""
        refused = self.answer is not None and not 200 <= self.answer.status < 300
        return refused and not self.guard.cancelled and self.guard.fired is None

    def refusal(self, body: bytes) -> LastwordError | None:
        """The error that a whole answer is, None if it is none."""
        assert self.answer is not None
        info = classify_response(self.answer.status, self.answer.headers, body)
        if info is None:
            return None
        location = self.answer.headers.get("location")
        if 300 <= self.answer.status < 400 and location:
            info = replace(
                info,
                message=f"HTTP {self.answer.status} sends the request elsewhere: set base_url for {location}",
                details={"location": location},
            )
        return self.error(info)

    def malformed(self, what: str, body: bytes) -> LastwordError:
        """The error for an answer that cannot be read."""
        raw = body[:MAX_RAW].decode("utf-8", "replace")
        status = self.answer.status if self.answer else None
        return self.error(make_error(Code.MALFORMED_RESPONSE, what, raw=raw, status=status))

    def broken(self, error: Exception) -> LastwordError:
        """The error for what the transport raised (the one place where exceptions become codes)."""
        info = self._interrupted()
        if info is None:
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            match meaning(error):
                case Met.UNSENDABLE:
                    info = make_error(Code.INVALID_REQUEST_ERROR, f"the request cannot be sent ({text})")
                case Met.UNREACHED if refused_the_certificate(error):
                    info = make_error(Code.CONNECTION_FAILED, f"the certificate of the server is not trusted ({text})")
                    info = replace(info, retryable=False)
                case Met.UNREACHED:
                    info = make_error(Code.CONNECTION_FAILED, f"the server was not reached ({text})")
                case Met.UNREADABLE:
                    info = make_error(Code.MALFORMED_RESPONSE, f"the answer cannot be read ({text})")
                case Met.BROKEN if self.answer is None:
                    info = make_error(Code.CONNECTION_FAILED, f"the connection broke before an answer came ({text})")
                case Met.BROKEN:
                    info = self.tracker.end("reset" if was_reset(error) else "truncated")
                    assert info is not None, "only a clean end can complete an answer"
        return self.error(info)

    def ended(self, wire: WireEnd, *, pending: bool) -> LastwordError | None:
        """The last word on a stream: None if it completed."""
        info = self.tracker.end(wire, pending=pending)
        return None if info is None else self.error(info)

    def cancelled(self, why: str) -> LastwordError:
        """The error for a call that this side ended."""
        return self.error(make_error(Code.CANCELLED, why))

    def error(self, info: ErrorInfo) -> LastwordError:
        """The exception for ``info``, with what was received and the request's id."""
        info = replace(info, request_id=info.request_id or self.request_id)
        return error_of(info, partial=self.tracker.partial())

    def note(self, error: LastwordError | None) -> None:
        """Write down what this attempt met, once."""
        if not self._noted:
            self._noted = True
            self.attempts.append(self._met(error))
            if error is None:
                self.budget.refund(self._retry.cost if self._retry else 0)
        if error is not None:
            error.attempts = list(self.attempts)

    def _met(self, error: LastwordError | None) -> Attempt:
        wall, started = self._attempt_started
        return Attempt(
            number=len(self.attempts) + 1,
            code=error.code if error else None,
            status=self.answer.status if self.answer else None,
            message=error.message if error else "",
            started_at=wall,
            duration=time.monotonic() - started,
            delay=self._retry.delay if self._retry else 0.0,
            timer=self.guard.fired,
        )

    def again(self, error: BaseException) -> bool:
        """Whether to try again after ``error``; notes the attempt.  tenacity's ``retry``."""
        if not isinstance(error, LastwordError):
            return False
        self.note(error)
        if self.guard.cancelled:
            return False
        decision = decide(
            error._info,
            attempt=len(self.attempts),
            delivered=self.delivered,
            left=self.deadline.left(time.monotonic()),
            policy=self.policy,
            budget=self.budget,
            random=random.random,
        )
        self._retry = decision if isinstance(decision, Retry) else None
        if isinstance(decision, GiveUp):
            error.add_note(f"not retried: {decision.reason}")
        return self._retry is not None

    def tenacity_options(self) -> dict[str, Any]:
        """How tenacity is to run this call: the decision is ours, the loop is its."""
        return {
            "retry": tenacity.retry_if_exception(self.again),
            "wait": lambda state: self._retry.delay if self._retry else 0.0,
            "stop": tenacity.stop_never,
            "reraise": True,
        }

    def outcome(self, error: LastwordError | None) -> Outcome:
        """The record of how the call ended."""
        if error is not None:
            return outcome_of(error)
        return Outcome(
            outcome="completed",
            request_id=self.request_id,
            finish_reasons=dict(self.tracker.finish_reasons),
            usage=self.tracker.usage,
            warnings=self.tracker.warnings,
            attempts=tuple(self.attempts),
        )

    def _interrupted(self) -> ErrorInfo | None:
        """What ended the wait, if it was not the network."""
        if self.guard.cancelled:
            return make_error(Code.CANCELLED, "the request was closed from this side while it was waiting")
        timer = self.guard.fired
        if timer is None:
            return None
        seconds = getattr(self.request.timeouts, timer)
        message = f"waited {seconds:g} s for {WAITED_FOR[timer]} (Timeouts.{timer})"
        return make_error(CODE_OF[timer], message, details={f"{timer}_timeout_s": seconds})
