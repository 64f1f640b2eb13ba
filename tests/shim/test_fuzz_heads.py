"""Heads of any kind on a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time

import pytest
from tests.shim.apps import DONE, EVENTS, Receive, Scope, Send, chunk
from tests.shim.wire import serving

HEAD_PARTS = [
    b"POST /v1/chat/completions HTTP/1.1\r\n", b"GET /v1/responses/\xff HTTP/1.1\r\n", b"POST /v1/messages HTTP/1.0\r\n",
    b"host: x\r\n", b"host: y\r\n", b"x-request-id: a b\r\n", b"x-request-id: ok-1\r\n", b"X-Request-ID: \xff\r\n",
    b"content-type: application/json\r\n", b"content-length: 2\r\n", b"content-length: -2\r\n", b"\r\n", b"{}", b"\x00", b"\n",
    b"transfer-encoding: chunked\r\n", b"expect: 100-continue\r\n", b"connection: close\r\n", b"request-timeout-ms: 50\r\n",
    b"connection: upgrade\r\nupgrade: h2c\r\n", b"2\r\n{}\r\n0\r\n\r\n", b"a" * 300 + b": b\r\n", b": \r\n", b"x: \r\n y\r\n",
]  # fmt: skip


@pytest.mark.anyio
async def test_heads_of_any_kind_leave_the_server_in_order() -> None:
    """On a real socket, for a bounded time: it answers the next request as ever, and nothing of it is left."""
    generator = random.Random(5)
    good = chunk("a", finish="stop") + DONE

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await send({"type": "http.response.body", "body": good})

    async def throw(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(0.2):
                writer.write(
                    b"".join(generator.choices(HEAD_PARTS, k=generator.randint(1, 9)))
                    + b"\r\n" * generator.randint(0, 2)
                )
                if generator.random() < 0.5:
                    writer.write_eof()
                await reader.read()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async with serving(app) as server:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            await asyncio.gather(*(throw(server.port) for _ in range(20)))
        answer = await server.ask()
        assert answer.body == good
        assert all(re.fullmatch(r"[\w.:-]{1,128}", record["request_id"]) for record in server.records)
        async with asyncio.timeout(3):
            while len(server.shim._core.register):  # type: ignore[union-attr]
                await asyncio.sleep(0.01)
