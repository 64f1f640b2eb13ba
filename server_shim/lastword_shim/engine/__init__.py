"""What the shim and an engine in the same process may tell each other.

The shim works without any of this; an engine that implements `Engine` and uses `current()` adds token counts, refusal
before the queue, and a shutdown that the shim can see coming.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lastword._classify import ErrorInfo, make_error
from lastword._codes import Code
from lastword_shim.admission.refusals import Refusal as Refusal
from lastword_shim.protocol.private import Secrets

if TYPE_CHECKING:
    from lastword_shim._settings import Settings

_CURRENT: ContextVar[Ticket | None] = ContextVar("lastword_ticket", default=None)


@dataclass(slots=True)
class Ticket:
    """One HTTP exchange, as the engine sees it.  Times are ``time.monotonic()`` seconds.

    ``request_id`` is the client's, for the log, ``inward_id`` the one sent inwards; ``max_tokens`` is what the body
    asks for explicitly; ``clamp`` the policy.  The rest is filled by the engine.
    """

    request_id: str
    inward_id: str = ""
    max_tokens: int | None = None
    clamp: bool = False
    room: Callable[[int], ErrorInfo | None] | None = None
    """Reserves room for so many prompt tokens, all prompts together; an error if there is none (the shim's part)."""
    refusal: ErrorInfo | None = None
    prompt_tokens: int | None = None
    effective_max_tokens: int | None = None
    completion_tokens: int | None = None
    submitted_at: float | None = None
    scheduled_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    queue_seconds: float | None = None
    generation_seconds: float | None = None
    sequences: int = 0
    finish_reasons: set[str] = field(default_factory=set)
    """The engine's own words for how its generations ended; an answer's protocol may have none for some of them."""
    secrets: Secrets = field(default_factory=Secrets)
    """What of the caller's is struck out of the log."""
    notes: dict[str, Any] = field(default_factory=dict)
    """The engine adapter's own: what it needs to find the request again."""
    _handed_out: int = field(default=0, init=False)

    def admit(self, prompt_tokens: int, *, max_model_len: int | None) -> None:
        """Called with each prompt's length before the engine takes it.

        Raises:
            Refusal: prompt and explicit max_tokens together do not fit, and the policy is to reject; or the server
                has no room for so many tokens now.
        """
        self.prompt_tokens = (self.prompt_tokens or 0) + prompt_tokens
        asked = self.max_tokens
        if self.clamp or asked is None or max_model_len is None or prompt_tokens + asked <= max_model_len:
            refused = self.room(self.prompt_tokens) if self.room is not None else None
            if refused is not None:
                self.refusal = refused
                raise Refusal(refused)
            return
        message = (
            f"The prompt has {prompt_tokens} tokens and max_tokens is {asked}: together {prompt_tokens + asked}, "
            f"but the model's context holds {max_model_len}. Shorten the prompt or ask for at most "
            f"{max(max_model_len - prompt_tokens, 0)} tokens."
        )
        details = {
            "prompt_tokens": prompt_tokens,
            "max_tokens": asked,
            "requested_tokens": prompt_tokens + asked,
            "max_model_len": max_model_len,
            "available_tokens": max(max_model_len - prompt_tokens, 0),
        }
        self.effective_max_tokens = None
        self.refusal = make_error(
            Code.CONTEXT_LENGTH_EXCEEDED, message, origin="shim", param="max_tokens", details=details
        )
        raise Refusal(self.refusal)

    def submitted(self, *, sequences: int = 1, at: float | None = None) -> None:
        """The engine has taken ``sequences`` more of this exchange."""
        self.sequences += sequences
        if self.submitted_at is None:
            self.submitted_at = time.monotonic() if at is None else at

    def scheduled(self, at: float | None = None) -> None:
        """The engine has begun, though no token may have come yet."""
        if self.scheduled_at is None:
            self.scheduled_at = time.monotonic() if at is None else at

    def counting(self) -> None:
        """The engine counts this exchange's tokens, and there are none yet: that is known, and not only not told."""
        if self.completion_tokens is None:
            self.completion_tokens = 0

    def handed_out(self, tokens: int) -> None:
        """The engine has handed out so many more; it may be known already that it has made them."""
        self._handed_out += tokens
        self.produced(self._handed_out)

    def produced(self, total: int, at: float | None = None) -> None:
        """The engine has made ``total`` tokens for this exchange so far, all choices together."""
        if total <= (self.completion_tokens or 0):
            return
        now = time.monotonic() if at is None else at
        self.completion_tokens = total
        self.last_token_at = now
        if self.first_token_at is None:
            self.first_token_at = now
            self.scheduled(now)


def current() -> Ticket | None:
    """The exchange that the running task belongs to, if it came through the shim."""
    return _CURRENT.get()


def enter(ticket: Ticket) -> None:
    """Make ``ticket`` the current one in this context (the shim's part)."""
    _CURRENT.set(ticket)


Condition = Literal["loading", "asleep", "paused", "dead"]
"""``loading``: it does not serve yet, or not for the moment; ``asleep``: it will not serve until it is woken;
``paused``: requests wait until it goes on; ``dead``: it has failed."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that an operator should read when the server starts; ``warns``: because something is not as it should be."""

    text: str
    warns: bool = False


class Host(Protocol):
    """What an engine may ask of the shim."""

    async def drain(self, timeout: float) -> None:
        """Refuse new requests, let open ones run for ``timeout`` seconds, then end them with their terminals."""


class Engine(Protocol):
    """What the shim asks of an engine.  Nothing here may block or raise."""

    @property
    def title(self) -> str:
        """What it is, for the people who read the line at the start."""

    @property
    def provider(self) -> str:
        """As OpenTelemetry's ``gen_ai.provider.name`` has it; ``unknown`` where that is not known."""

    @property
    def counts_tokens(self) -> bool:
        """Whether it tells the lengths of prompts, and counts tokens that no stream shows."""

    def attach(self, host: Host) -> None:
        """Called once in the running loop, before the first request."""

    def fault(self, settings: Settings) -> str | None:
        """Why the server must not start with these settings, and what to set; None if it may."""

    def remarks(self, settings: Settings) -> Iterable[Remark]:
        """What to say of these settings with this engine in the line that is logged at the start."""

    def condition(self) -> Condition | None:
        """What keeps the engine from generating, as far as it is known without asking it; None if nothing does."""

    def processes(self) -> int:
        """How many API server processes share the engine; each sees the requests only that came to it."""

    def refresh(self, ticket: Ticket) -> bool:
        """Bring the ticket's counts up to date between outputs; False if this engine cannot."""

    async def release(self, ticket: Ticket) -> None:
        """Let it make no more for this exchange, whatever the application, which has been stopped, has left at work."""

    def restate(self, error: ErrorInfo, ticket: Ticket) -> ErrorInfo:
        """An error that the engine's application answered with, put better where this engine's words mislead."""

    def explain(self, error: BaseException) -> ErrorInfo | None:
        """What an exception that escaped from the engine's application means; None if that is not known."""
