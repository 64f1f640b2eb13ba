"""Requests as bytes, to a sidecar in front of an engine that answers each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from tests.shim.wire import Answer, Server, read_answer
from tests.sidecar.wire import WHOLE, Call, Upstream, chunked, plain, sidecar, upstream

BODY = b'{"model":"m","messages":[]}'
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
FILES = b"POST /v1/files HTTP/1.1\r\nhost: a\r\ncontent-type: text/x\r\n"
METRICS = b"POST /metrics HTTP/1.1\r\nhost: a\r\ncontent-type: text/x\r\n"
HANDSHAKE = b"GET /v1/realtime HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
LENGTH = b"content-length: %d\r\n" % len(BODY)
CHUNKED = b"transfer-encoding: chunked\r\n"
IN_CHUNKS = chunked(BODY)


@contextlib.asynccontextmanager
async def behind(**settings: Any) -> AsyncIterator[tuple[Upstream, Server]]:
    """An engine that answers each request."""

    async def handler(call: Call) -> None:
        await call.send(plain(WHOLE))

    async with upstream(handler) as engine, sidecar(engine.url, **settings) as server:
        yield engine, server


async def asked(port: int, *parts: bytes, within: float = 5) -> Answer:
    """The answer to what is sent, a pause between its parts."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0.05 if len(parts) > 1 else 0)
        async with asyncio.timeout(within):
            return await read_answer(reader)
    finally:
        writer.close()
