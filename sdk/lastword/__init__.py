"""Every request to an LLM server gets exactly one last word: completed, incomplete, failed or cancelled.

    from lastword import Client

    client = Client(base_url="http://127.0.0.1:8000/v1")
    with client.chat.completions.create(model="m", messages=[...], stream=True) as stream:
        for chunk in stream: ...

A stream that does not complete raises where it would otherwise have ended quietly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lastword._async_client import AsyncClient
    from lastword._async_stream import AsyncStream
    from lastword._client import Client
    from lastword._codes import PROFILES, Category, Code
    from lastword._config import __version__
    from lastword._deadline import Timeouts
    from lastword._errors import (
        AuthenticationError,
        Cancelled,
        ConnectionFailed,
        ContentFiltered,
        ContextLengthExceeded,
        EngineUnavailable,
        GenerationAborted,
        InvalidRequest,
        InvalidToolArguments,
        LastwordError,
        NotFound,
        Overloaded,
        PermissionDenied,
        QuotaExceeded,
        RateLimited,
        RequestError,
        RequestTimeout,
        RequestTooLarge,
        ServerError,
        StreamIncomplete,
    )
    from lastword._outcome import Attempt, Outcome, Partial, ToolCall
    from lastword._retry import RetryPolicy
    from lastword._stream import Stream

__all__ = [
    "PROFILES",
    "AsyncClient",
    "AsyncStream",
    "Attempt",
    "AuthenticationError",
    "Cancelled",
    "Category",
    "Client",
    "Code",
    "ConnectionFailed",
    "ContentFiltered",
    "ContextLengthExceeded",
    "EngineUnavailable",
    "GenerationAborted",
    "InvalidRequest",
    "InvalidToolArguments",
    "LastwordError",
    "NotFound",
    "Outcome",
    "Overloaded",
    "Partial",
    "PermissionDenied",
    "QuotaExceeded",
    "RateLimited",
    "RequestError",
    "RequestTimeout",
    "RequestTooLarge",
    "RetryPolicy",
    "ServerError",
    "Stream",
    "StreamIncomplete",
    "Timeouts",
    "ToolCall",
    "__version__",
]

# Where each name is (an exception in a module of them all), loaded when it is asked for: the clients bring in the HTTP library,
# which the shim and a reader of codes can do without, and the command takes Ctrl-C in hand before what takes its time.
_HOMES = {
    "AsyncClient": "lastword._async_client",
    "AsyncStream": "lastword._async_stream",
    "Client": "lastword._client",
    **dict.fromkeys(("PROFILES", "Category", "Code"), "lastword._codes"),
    "__version__": "lastword._config",
    "Timeouts": "lastword._deadline",
    **dict.fromkeys(("Attempt", "Outcome", "Partial", "ToolCall"), "lastword._outcome"),
    "RetryPolicy": "lastword._retry",
    "Stream": "lastword._stream",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES.get(name, "lastword._errors")), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
