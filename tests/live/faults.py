"""A second middleware for vLLM that makes its engine client fail as a request's ``x-fault`` header asks.

Mounted with ``--middleware faults.Faults`` it stands outside of the shim, but what it changes, the engine client's
``generate``, lies inside: the exceptions take vLLM's own ways out, through its handlers and its stream generators.

``x-fault: {"at": "call" | "first" | "later", "raise": "RuntimeError", "text": "…"}`` or
``{"at": "later" | "queued", "abort": true}``
"""

from __future__ import annotations

import asyncio
import builtins
import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import Any

Scope = MutableMapping[str, Any]
_fault: ContextVar[dict[str, Any] | None] = ContextVar("fault", default=None)


class Faults:
    """ASGI middleware."""

    def __init__(self, app: Callable[[Scope, Any, Any], Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":  # before the shim looks at the engine client, since this one is outside
            plant(scope["app"].state.engine_client)
        elif scope["type"] == "http":
            asked = dict(scope["headers"]).get(b"x-fault")
            _fault.set(json.loads(asked) if asked else None)
        await self.app(scope, receive, send)


def plant(client: Any) -> None:
    """Wrap ``generate``."""
    original = client.generate

    def generate(prompt: Any, params: Any, request_id: str, **options: Any) -> Any:
        fault = _fault.get()
        if fault is None:
            return original(prompt, params, request_id, **options)
        if fault["at"] == "call":
            raise error_of(fault)
        return failing(fault, original(prompt, params, request_id, **options), client, request_id)

    client.generate = generate


async def failing(
    fault: dict[str, Any], outputs: AsyncIterator[Any], client: Any, request_id: str
) -> AsyncIterator[Any]:
    if fault["at"] == "first":
        raise error_of(fault)
    if fault["at"] == "queued":  # for an engine that has been stopped, so that no token comes first
        asyncio.get_running_loop().call_later(0.2, lambda: asyncio.ensure_future(client.abort(request_id)))
    seen = 0
    async for output in outputs:
        yield output
        seen += 1
        if fault["at"] == "later" and (seen == 3 or output.finished):  # a whole answer has one output only
            if not fault.get("abort"):
                raise error_of(fault)
            await client.abort(request_id)


def error_of(fault: dict[str, Any]) -> Exception:
    kind: type[Exception] = getattr(builtins, fault["raise"])
    return kind(fault["text"])
