"""The little of ASGI that the embedded engine needs: reading a body, sending a response, seeing the client leave."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lastword_shim.engine.embedded.requests import RefusedError
from lastword_shim.protocol.wire import Receive, Send


async def answer_lifespan(receive: Receive, send: Send) -> None:
    """Say yes to start-up and shutdown."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def read_body(receive: Receive) -> bytes:
    """Give the whole request body; ``RefusedError`` if the client leaves before its end."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "BadRequestError", "the client left before its request was whole")
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


async def wait_disconnect(receive: Receive) -> None:
    """Return once the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def start(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Send the head of the response."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def write(send: Send, text: str) -> None:
    """Send a part of the body."""
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def respond(
    send: Send, status: int, body: dict[str, Any] | bytes, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Send a whole response: JSON, or bytes with the headers that say what they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = [*headers, (b"content-length", str(len(content)).encode())]
    if not isinstance(body, bytes):
        given.append((b"content-type", b"application/json"))
    await start(send, status, given)
    await send({"type": "http.response.body", "body": content})
