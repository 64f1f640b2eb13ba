"""Scripted applications: what stands behind the shim in its tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from lastword_shim.engine import current
from lastword_shim.protocol import wire

Scope = wire.Scope
Message = wire.Message
Receive = wire.Receive
Send = wire.Send
App = wire.App

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
GOOD = chunk("a", finish="stop") + DONE
WHOLE = {
    "id": "c",
    "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}],
    "usage": {"completion_tokens": 1},
}
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


class Stopwatch:
    """An application that notes how it ended."""

    def __init__(self, *, stream: bool, tokens: int) -> None:
        self.stream, self.tokens = stream, tokens
        self.ended = asyncio.Event()
        self.begun = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)

        async def answer() -> None:
            self.begun.set()
            try:
                if self.stream:
                    await send(
                        {
                            "type": "http.response.start",
                            "status": 200,
                            "headers": [(b"content-type", b"text/event-stream")],
                        }
                    )
                for number in range(self.tokens):
                    ticket = current()
                    assert ticket is not None
                    ticket.submitted()
                    ticket.produced(number + 1)
                    if self.stream:
                        await send({"type": "http.response.body", "body": chunk("a"), "more_body": True})
                await asyncio.sleep(30)
            finally:
                self.ended.set()

        await until_gone(answer(), receive)


class Slow:
    """Answers when it is let; counts how many are inside."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.go = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            waiting = asyncio.ensure_future(self.go.wait())
            gone = asyncio.ensure_future(receive())
            await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            gone.cancel()
        finally:
            self.inside -= 1
        await answering_now(send)


async def answering_now(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    body = b'{"id":"c","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}'
    await send({"type": "http.response.body", "body": body})


def stubborn(ended: Callable[[], None]) -> App:
    """An application that neither hears that the client has left nor lets itself be cancelled at once."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        for _ in range(3):
            try:
                await asyncio.sleep(0.8)
            except asyncio.CancelledError:
                continue
        ended()

    return app
