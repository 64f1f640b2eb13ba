"""Scripted applications: what stands behind the shim in its tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8")]
JSON = [(b"content-type", b"application/json")]


def chunk(content: str = "", *, finish: str | None = None, index: int = 0, **more: object) -> bytes:
    """A chat chunk as one event."""
    choice = {"index": index, "delta": {"content": content} if content else {}, "finish_reason": finish}
    return (
        b"data: "
        + json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice], **more}).encode()
        + b"\n\n"
    )


DONE = b"data: [DONE]\n\n"
ROLE = b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
ERROR = b'data: {"error": {"message": "bad grammar", "type": "BadRequestError", "param": null, "code": 400}}\n\n'


def streaming(*steps: bytes | float | BaseException | Callable[[], Awaitable[object]], status: int = 200) -> App:
    """An application that answers with an event stream: bytes are sent, numbers waited (s), exceptions raised, callables awaited.

    Like Starlette it stops when the client is gone.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)

        async def answer() -> None:
            await send({"type": "http.response.start", "status": status, "headers": EVENTS})
            for step in steps:
                if isinstance(step, bytes):
                    await send({"type": "http.response.body", "body": step, "more_body": True})
                elif isinstance(step, int | float):
                    await asyncio.sleep(step)
                elif isinstance(step, BaseException):
                    raise step
                else:
                    await step()
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        await until_gone(answer(), receive)

    return app


def answering(
    body: Mapping[str, Any] | bytes,
    *,
    status: int = 200,
    headers: list[tuple[bytes, bytes]] | None = None,
    after: float = 0,
) -> App:
    """An application that reads the body and answers in one piece."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)

        async def answer() -> None:
            await asyncio.sleep(after)
            fields = [*(headers if headers is not None else JSON), (b"content-length", str(len(sent)).encode())]
            await send({"type": "http.response.start", "status": status, "headers": fields})
            await send({"type": "http.response.body", "body": sent, "more_body": False})

        await until_gone(answer(), receive)

    return app


async def read_body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client has left")  # as frameworks do
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


async def until_gone(work: Any, receive: Receive) -> None:
    """Run ``work`` until it ends or the client has left, as Starlette's StreamingResponse does."""

    async def listen() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(work), asyncio.create_task(listen())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if not tasks[0].cancelled() and tasks[0].exception() is not None:
        raise tasks[0].exception() or AssertionError
