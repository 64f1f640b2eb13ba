"""An engine with keys whose generations go on until they are let or stopped, and what its callers ask of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any

from tests.shim.apps import EVENTS, JSON, Receive, Scope, Send, chunk, read_body, until_gone
from tests.shim.wire import Answer, Server

from lastword_shim.engine import current

A, B, NOBODY = {"authorization": "Bearer a"}, {"x-api-key": "b"}, {"authorization": "Bearer wrong"}
LIST = "/lastword/requests"
CHALLENGE = (b"www-authenticate", b'Bearer realm="engine"')


class Guarded:
    """An application that checks its keys as it likes, before it reads anything.

    ``x-kind`` says what becomes of a generation: ``queued`` ones make no token, others one every ``pace`` seconds.
    """

    def __init__(self, *, keys: Collection[str] = ("a", "b"), pace: float = 0.01) -> None:
        self.keys = keys
        self.pace = pace
        self.models: Any = None  # instead of its own answer to /v1/models
        self.generate: Any = self._generate
        self.asked: list[dict[bytes, bytes]] = []
        self.inside = 0
        self.stopped_at = 0.0
        self.tokens = 0
        self.go = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if scope["path"].endswith("/v1/models"):
            self.asked.append(headers)
            if self.models is not None:
                await self.models(scope, receive, send)
                return
        bearers = {f"Bearer {key}".encode() for key in self.keys}
        known = headers.get(b"authorization") in bearers or headers.get(b"x-api-key", b"").decode() in self.keys
        if self.keys and not known:
            await reply(send, 401, {"error": "Unauthorized"}, CHALLENGE)
        elif scope["path"].endswith("/v1/models"):
            await reply(send, 200, {"data": []})
        else:
            await self.generate(scope, receive, send)

    async def _generate(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = dict(scope["headers"]).get(b"x-kind", b"").decode()
        stream = bool(json.loads(await read_body(receive) or b"{}").get("stream"))
        ticket = current()
        assert ticket is not None
        ticket.prompt_tokens = 3
        ticket.submitted()
        ticket.counting()
        self.inside += 1
        try:
            await until_gone(self._answer(send, ticket, kind, stream=stream), receive)
        finally:
            self.inside -= 1
            self.stopped_at = asyncio.get_running_loop().time()

    async def _answer(self, send: Send, ticket: Any, kind: str, *, stream: bool) -> None:
        if stream:
            await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        made = 0
        while not self.go.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.go.wait(), self.pace)
            if kind == "queued":
                continue
            made += 1
            self.tokens += 1
            ticket.produced(made)
            if stream:
                body = chunk("x" * 200_000 if kind == "large" else "a")
                await send({"type": "http.response.body", "body": body, "more_body": True})
        if stream:
            end = chunk("b", finish="stop") + b"data: [DONE]\n\n"
            await send({"type": "http.response.body", "body": end, "more_body": False})
        else:
            await reply(send, 200, {"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]})


async def reply(send: Send, status: int, body: object, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*JSON, *headers]})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


async def get(server: Server, path: str = LIST, headers: Mapping[str, str] = A, method: str = "GET") -> Answer:
    return await server.ask(b"", path=path, method=method, headers=headers)


async def requests(server: Server, headers: Mapping[str, str] = A, query: str = "") -> list[dict[str, Any]]:
    """What the caller of these headers has open."""
    answer = await get(server, LIST + query, headers)
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = json.loads(answer.body)["requests"]
    return found


async def cancel(server: Server, request_id: str, headers: Mapping[str, str] = A, **more: Any) -> Answer:
    return await server.ask(b"", path=f"/lastword/requests/{request_id}/cancel", headers=headers, **more)


@contextlib.asynccontextmanager
async def generating(
    server: Server, request_id: str, headers: Mapping[str, str] = A, *, state: str = "generating", **body: Any
) -> AsyncIterator[asyncio.Task[Answer]]:
    """A generation of that caller's that has got to ``state``; its answer."""
    task = asyncio.create_task(
        server.ask({"model": "m", "stream": True, **body}, headers={**headers, "x-request-id": request_id})
    )
    try:
        await until_state(server, request_id, state, headers)
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until_state(server: Server, request_id: str, state: str, headers: Mapping[str, str] = A) -> None:
    async with asyncio.timeout(5):
        while state not in {one["state"] for one in await requests(server, headers) if one["request_id"] == request_id}:
            await asyncio.sleep(0.01)
