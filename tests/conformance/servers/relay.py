"""The smallest gateway, which changes nothing: relay.py PORT UPSTREAM."""

import asyncio
import contextlib
import sys
from collections.abc import MutableMapping
from typing import Any

import httpx
import uvicorn

HOP = {b"host", b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te", b"trailer"}
Scope = MutableMapping[str, Any]


async def relay(scope: Scope, receive: Any, send: Any) -> None:
    body, message = b"", {"more_body": True}
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    passing = asyncio.ensure_future(pass_on(scope, body, send))
    leaving = asyncio.ensure_future(receive())  # the next message is that the client has left
    await asyncio.wait({passing, leaving}, return_when=asyncio.FIRST_COMPLETED)
    passing.cancel(), leaving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await passing


async def pass_on(scope: Scope, body: bytes, send: Any) -> None:
    headers = [(name, value) for name, value in scope["headers"] if name not in HOP]
    request = CLIENT.build_request(scope["method"], scope["path"], headers=headers, content=body)
    try:
        answer = await CLIENT.send(request, stream=True)
    except httpx.TransportError:
        answer = httpx.Response(502, headers={"content-type": "text/plain"}, stream=httpx.ByteStream(b"Bad Gateway"))
    async with contextlib.aclosing(answer):
        kept = [(name.lower(), value) for name, value in answer.headers.raw if name.lower() not in HOP]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
        async for part in answer.aiter_raw():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


CLIENT = httpx.AsyncClient(base_url=sys.argv[2], timeout=None, limits=httpx.Limits(max_connections=None))
uvicorn.run(relay, port=int(sys.argv[1]), access_log=False, lifespan="off", timeout_graceful_shutdown=5)
