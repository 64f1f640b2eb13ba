"""The smallest gateway: passes requests on to an engine and streams back what it says, with or without the shim round it.

relay.py PORT UPSTREAM [--shim]
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import MutableMapping
from typing import Any

import httpx
import uvicorn

from lastword_shim import Shim

HOP = {"host", "connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "proxy-connection"}
Scope = MutableMapping[str, Any]


async def relay(scope: Scope, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    passing = asyncio.ensure_future(pass_on(scope, body, send))
    leaving = asyncio.ensure_future(receive())  # the next message is that the client has left
    await asyncio.wait({passing, leaving}, return_when=asyncio.FIRST_COMPLETED)
    for task in (passing, leaving):
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    if not passing.cancelled():
        passing.result()


async def pass_on(scope: Scope, body: bytes, send: Any) -> None:
    headers = [(name, value) for name, value in scope["headers"] if name.decode() not in HOP]
    request = CLIENT.build_request(scope["method"], scope["path"], headers=headers, content=body)
    try:
        answer = await CLIENT.send(request, stream=True)
    except httpx.TransportError:
        await send({"type": "http.response.start", "status": 502, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"Bad Gateway"})
        return
    async with contextlib.aclosing(answer):
        kept = [(name.lower(), value) for name, value in answer.headers.raw if name.decode().lower() not in HOP]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
        async for part in answer.aiter_raw():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class Server(uvicorn.Server):
    async def shutdown(self, sockets: Any = None) -> None:
        if isinstance(APP, Shim):
            await APP.drain(1)  # before uvicorn closes the connections
        await super().shutdown(sockets)


CLIENT = httpx.AsyncClient(base_url=sys.argv[2], timeout=None, limits=httpx.Limits(max_connections=None))
APP = Shim(relay) if "--shim" in sys.argv else relay
Server(uvicorn.Config(APP, port=int(sys.argv[1]), access_log=False, lifespan="off", timeout_graceful_shutdown=5)).run()
