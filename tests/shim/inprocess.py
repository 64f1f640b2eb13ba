"""The shim asked without a socket, where nothing of the wire is at stake: an answer and its record in milliseconds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tests.shim.apps import CHAT, App, Message, Scope
from tests.shim.wire import Answer, recording

from lastword_shim import Settings, Shim
from lastword_shim.engine import Engine


async def answered(
    app: App,
    body: Mapping[str, Any] | bytes | None = None,
    *,
    path: str = CHAT,
    headers: Mapping[str, str] | None = None,
    engine: Engine | None = None,
    **settings: Any,
) -> tuple[Answer, dict[str, Any]]:
    """POST as a server hands it over, by a client that stays, and leave no task behind."""
    before = asyncio.all_tasks()
    asking = body if body is not None else {"model": "m", "stream": True}
    sent = asking if isinstance(asking, bytes) else json.dumps(asking).encode()
    fields = {"host": "test", "content-type": "application/json", "content-length": str(len(sent)), **(headers or {})}
    scope: Scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "root_path": ""}
    scope["headers"] = [(name.encode(), value.encode("latin-1")) for name, value in fields.items()]
    parts: list[Message] = [{"type": "http.request", "body": sent, "more_body": False}]
    over = asyncio.Event()
    left: list[Message] = []

    async def receive() -> Message:
        if not parts:
            await over.wait()
        return parts.pop() if parts else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        left.append(message)
        await asyncio.sleep(0)

    shim = Shim(app, settings=Settings(**settings), engine=engine)
    records: list[dict[str, Any]] = []
    with recording(shim, records):
        async with asyncio.timeout(10):
            await shim(scope, receive, send)
            over.set()
            while running := asyncio.all_tasks() - before:
                await asyncio.wait(running, timeout=0.05)
    (record,) = records
    start, *bodies = left
    given = [(name.decode().lower(), value.decode("latin-1")) for name, value in start["headers"]]
    whole = b"".join(message["body"] for message in bodies)
    length = dict(given).get("content-length")
    complete = not bodies[-1]["more_body"] and (length is None or int(length) == len(whole))
    return Answer(start["status"], given, whole, complete), record
