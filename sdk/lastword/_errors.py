"""The exceptions, named for what the caller can do.

LastwordError
├── RequestError             fixable: change the request, the key or the address
│   ├── InvalidRequest           invalid_request_error, method_not_allowed, not_implemented
│   ├── ContextLengthExceeded    context_length_exceeded; the numbers are in .details
│   ├── AuthenticationError      unauthorized
│   ├── PermissionDenied         permission_denied
│   ├── NotFound                 model_not_found, not_found
│   ├── RequestTooLarge          request_too_large
│   ├── ContentFiltered          content_filtered
│   └── QuotaExceeded            quota_exceeded
├── ServerError              retryable: the same request may succeed later
│   ├── Overloaded               queue_overloaded, queue_timeout
│   ├── RateLimited              rate_limit_exceeded
│   ├── EngineUnavailable        engine_unavailable, model_loading, server_shutting_down, out_of_memory
│   └── GenerationAborted        generation_aborted
├── StreamIncomplete         the answer is not proven whole, or cannot be read: stream_incomplete,
│                            malformed_response, unknown_finish_reason
├── RequestTimeout           a timer fired, the client's or the server's; .timer says which
├── ConnectionFailed         the server was not reached, or hung up before it answered
├── Cancelled                somebody stopped the request
└── InvalidToolArguments     the model wrote tool-call arguments that are no JSON (the answer is complete)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lastword._classify import ErrorInfo, error_body, make_error
from lastword._codes import CODES, Code
from lastword._outcome import Attempt, Outcome, Partial, ToolCall


class LastwordError(Exception):
    """A request that did not complete.

    Every error has: ``code`` (the contract's string), ``category`` (fixable, retryable or cancelled), ``retryable``
    (whether the same request may succeed later; it does not ask what has been handed over or how often it was tried:
    see ``partial`` and ``attempts``), ``outcome`` (failed, incomplete or cancelled; completed for
    ``InvalidToolArguments`` only), ``message``, ``type``, ``param``, ``status`` (HTTP status or None), ``request_id``,
    ``retry_after`` (seconds or None), ``attempts`` (what each try met), ``partial`` (what was received), ``action``
    (what the caller can do), ``origin`` (client, gateway, shim or engine: who said so), ``details`` (the numbers of the
    message) and ``raw`` (the server's words, cut short).
    """

    def __init__(self, info: ErrorInfo, *, partial: Partial | None = None, attempts: Sequence[Attempt] = ()) -> None:
        super().__init__(info.message)
        self.code: str = info.code
        self.category: str = info.category
        self.retryable: bool = info.retryable
        self.outcome: str = info.outcome
        self.message: str = info.message
        self.type: str | None = info.type
        self.param: str | None = info.param
        self.status: int | None = info.status
        self.request_id: str | None = info.request_id
        self.retry_after: float | None = info.retry_after
        self.attempts: list[Attempt] = list(attempts)
        self.partial: Partial = partial or Partial()
        self.origin: str = info.origin
        self.details: Mapping[str, Any] = info.details
        self.raw: str | None = info.raw
        self._info = info

    @property
    def action(self) -> str:
        """What the caller can do about it, from the registry."""
        known = CODES.get(self.code)
        return known.action if known else "Look at the message; this version of lastword does not know the code."

    @property
    def body(self) -> dict[str, Any]:
        """The error in the contract's shape, ready to be passed on as JSON."""
        return error_body(self._info)

    def __str__(self) -> str:
        parts = [self.code, self.status and f"HTTP {self.status}", self.request_id and f"request {self.request_id}"]
        tries = f"; {len(self.attempts)} attempts" if len(self.attempts) > 1 else ""
        return f"{self.message} [{', '.join(str(part) for part in parts if part)}{tries}]. {self.action}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._info, self.partial, self.attempts)


class RequestError(LastwordError):
    """The request must change before it can succeed."""


class InvalidRequest(RequestError):
    """The server cannot read or does not accept the request as it is."""


class ContextLengthExceeded(RequestError):
    """Prompt and answer do not fit; ``details`` has prompt_tokens, max_tokens and max_model_len where known."""


class AuthenticationError(RequestError):
    """The key is missing or wrong."""


class PermissionDenied(RequestError):
    """The key is known and may not do this."""


class NotFound(RequestError):
    """No such model or route."""


class RequestTooLarge(RequestError):
    """The body is larger than the server accepts."""


class ContentFiltered(RequestError):
    """The provider's filter refused the prompt."""


class QuotaExceeded(RequestError):
    """A limit that waiting does not cure."""


class ServerError(LastwordError):
    """The server failed; the same request may succeed later."""


class Overloaded(ServerError):
    """The server's queue is full, or the request waited in it too long."""


class RateLimited(ServerError):
    """Too many requests for this key; ``retry_after`` says how long to wait where the server knows."""


class EngineUnavailable(ServerError):
    """Not serving: loading, draining, out of memory or dead."""


class GenerationAborted(ServerError):
    """The engine gave up this request while it was running."""


class StreamIncomplete(LastwordError):
    """The answer is not proven whole; ``partial`` has what came."""


class RequestTimeout(LastwordError):
    """A timer fired: ``timer`` is connect, first_token, idle or total; ``origin`` says whose it was."""

    @property
    def timer(self) -> str:
        """Which timer: connect, first_token, idle or total."""
        return TIMERS[self.code]


class ConnectionFailed(LastwordError):
    """The server was not reached, or closed the connection before it answered."""


class Cancelled(LastwordError):
    """The request was stopped from this side: closed, cancelled or abandoned."""


class InvalidToolArguments(LastwordError):
    """The model wrote arguments that are no JSON; ``tool_call.raw_arguments`` has its text, never repaired (TOOL-1)."""

    def __init__(self, tool_call: ToolCall, *, reason: str) -> None:
        name = tool_call.name or "without a name"
        message = f"the arguments of the tool call {name} are not JSON ({reason})"
        raw = tool_call.raw_arguments
        super().__init__(make_error(Code.MALFORMED_RESPONSE, message, origin="engine", retryable=False, raw=raw))
        self.tool_call = tool_call
        self._reason = reason
        self.outcome = "completed"  # the wire did its part; the model did not

    @property
    def action(self) -> str:
        """What the caller can do about it."""
        return (
            "Show the model its text and the reason and ask it again, or refuse the call; nothing was cut on the way."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_tool_arguments, (self.tool_call, self._reason)


TIMERS: Final[Mapping[str, str]] = {
    Code.CONNECT_TIMEOUT: "connect",
    Code.FIRST_TOKEN_TIMEOUT: "first_token",
    Code.GENERATION_STALLED: "idle",
    Code.GENERATION_TIMEOUT: "total",
    Code.DEADLINE_EXCEEDED: "total",
}

_CLASSES: Final[Mapping[str, type[LastwordError]]] = {
    Code.INVALID_REQUEST_ERROR: InvalidRequest,
    Code.METHOD_NOT_ALLOWED: InvalidRequest,
    Code.NOT_IMPLEMENTED: InvalidRequest,
    Code.CONTEXT_LENGTH_EXCEEDED: ContextLengthExceeded,
    Code.UNAUTHORIZED: AuthenticationError,
    Code.PERMISSION_DENIED: PermissionDenied,
    Code.MODEL_NOT_FOUND: NotFound,
    Code.NOT_FOUND: NotFound,
    Code.REQUEST_TOO_LARGE: RequestTooLarge,
    Code.CONTENT_FILTERED: ContentFiltered,
    Code.QUOTA_EXCEEDED: QuotaExceeded,
    Code.QUEUE_OVERLOADED: Overloaded,
    Code.QUEUE_TIMEOUT: Overloaded,
    Code.RATE_LIMIT_EXCEEDED: RateLimited,
    Code.ENGINE_UNAVAILABLE: EngineUnavailable,
    Code.MODEL_LOADING: EngineUnavailable,
    Code.SERVER_SHUTTING_DOWN: EngineUnavailable,
    Code.OUT_OF_MEMORY: EngineUnavailable,
    Code.GENERATION_ABORTED: GenerationAborted,
    Code.STREAM_INCOMPLETE: StreamIncomplete,
    Code.MALFORMED_RESPONSE: StreamIncomplete,
    Code.UNKNOWN_FINISH_REASON: StreamIncomplete,
    Code.CONNECTION_FAILED: ConnectionFailed,
    Code.CANCELLED: Cancelled,
    Code.CLIENT_DISCONNECTED: Cancelled,
    **dict.fromkeys(TIMERS, RequestTimeout),
}
_BY_CATEGORY: Final = {"fixable": RequestError, "retryable": ServerError, "cancelled": Cancelled}


def error_of(info: ErrorInfo, *, partial: Partial | None = None, attempts: Sequence[Attempt] = ()) -> LastwordError:
    """The exception for a classified failure; a code without a class of its own takes its category's."""
    kind = _CLASSES.get(info.code) or _BY_CATEGORY[info.category]
    return kind(info, partial=partial, attempts=attempts)


def outcome_of(error: LastwordError) -> Outcome:
    """The outcome of a call that raised ``error``."""
    return Outcome(
        outcome=error.outcome,
        code=error.code,
        category=error.category,
        retryable=error.retryable,
        message=error.message,
        request_id=error.request_id,
        finish_reasons=error.partial.finish_reasons,
        usage=error.partial.usage,
        attempts=tuple(error.attempts),
        error=error,
    )


def _restore(kind: type[LastwordError], info: ErrorInfo, partial: Partial, attempts: list[Attempt]) -> LastwordError:
    return kind(info, partial=partial, attempts=attempts)


def _restore_tool_arguments(tool_call: ToolCall, reason: str) -> InvalidToolArguments:
    return InvalidToolArguments(tool_call, reason=reason)
