"""WebSockets, passed on both ways; what they say is not judged.  Needs the package ``websockets``."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from lastword._classify import make_error
from lastword._codes import Code
from lastword_shim.protocol.settling import answer_alone
from lastword_shim.protocol.wire import Headers, Message, Receive, Scope, Send
from lastword_shim.sidecar.failures import UpstreamError, failure_of
from lastword_shim.sidecar.fields import inward, without_hop
from lastword_shim.sidecar.pool import Pool

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_HANDSHAKE: Final = frozenset({
    b"sec-websocket-key", b"sec-websocket-version", b"sec-websocket-extensions", b"sec-websocket-protocol",
    b"sec-websocket-accept", b"host", b"content-length",
})  # fmt: skip
_NORMAL: Final = 1000
_NO_CODE: Final = frozenset({1005, 1006, 1015})  # they are seen, and never sent (RFC 6455 §7.4.1)
_PATIENCE: Final = 0.5
"""Seconds that the upstream gets to close what is to be closed."""
_BROKEN: Final = 1014
"""Bad Gateway, in the registry of close codes: the upstream was lost in the middle."""


async def relay(pool: Pool, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one: connect to the upstream first, so that the client hears of its answer and not of ours."""
    if (await receive())["type"] != "websocket.connect":
        return
    connecting, first = asyncio.create_task(_connect(pool, scope)), asyncio.ensure_future(receive())
    try:
        await asyncio.wait((connecting, first), return_when=asyncio.FIRST_COMPLETED)
        if connecting.done():  # else the client has left: before it is accepted it has nothing else to say
            await _between(connecting.result(), first, receive, send)
    except UpstreamError as error:
        await _refuse(scope, send, *answer_alone(error.info()))
    except _Refused as refused:
        await _refuse(scope, send, refused.status, refused.fields, refused.body)
    finally:
        first.cancel()
        connecting.cancel()
        connecting.add_done_callback(_drop)


async def _between(upstream: ClientConnection, first: asyncio.Future[Message], receive: Receive, send: Send) -> None:
    fields = without_hop(_pairs(upstream.response), also=_HANDSHAKE)
    await send({"type": "websocket.accept", "subprotocol": upstream.subprotocol, "headers": fields})
    ways = (asyncio.create_task(_inwards(upstream, first, receive)), asyncio.create_task(_outwards(upstream, send)))
    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    for way in ways:
        way.cancel()
    await asyncio.gather(*ways, return_exceptions=True)


def _drop(connecting: asyncio.Task[ClientConnection]) -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().transport.abort()


class _Refused(Exception):
    def __init__(self, status: int, fields: Headers, body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status, self.fields, self.body = status, fields, body


async def _connect(pool: Pool, scope: Scope) -> ClientConnection:
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidStatus, WebSocketException
        from websockets.typing import Subprotocol
    except ModuleNotFoundError:
        message = "WebSockets are not passed on here: the sidecar was installed without the package for it."
        raise _Refused(*answer_alone(make_error(Code.NOT_IMPLEMENTED, message, origin="shim"))) from None
    address = pool.address
    uri = f"{'wss' if address.secure else 'ws'}://{address.authority}{address.target(scope).decode('latin-1')}"
    fields = [(n, v) for n, v in inward(scope, address, []) if n not in _HANDSHAKE]
    tls: dict[str, Any] = {"ssl": pool.tls} if address.secure else {}
    try:
        return await connect(
            uri,
            additional_headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields],
            subprotocols=[Subprotocol(name) for name in scope.get("subprotocols", ())] or None,
            compression=None,
            user_agent_header=None,
            proxy=None,
            create_connection=_kind(),
            close_timeout=_PATIENCE,
            ping_interval=None,  # what is asked is passed on; whether somebody answers is theirs to judge
            max_size=None,
            open_timeout=pool.connect_timeout,
            host=address.host,
            port=address.port,
            **tls,
        )
    except InvalidStatus as error:
        fields = without_hop(_pairs(error.response), also=_HANDSHAKE)
        raise _Refused(error.response.status_code, fields, bytes(error.response.body or b"")) from None
    except (OSError, ValueError, WebSocketException) as error:
        raise failure_of(error, connecting=True) from error


@cache
def _kind() -> type[ClientConnection]:
    """One whose end comes: of itself the library waits for the server to close, however long that takes."""
    from websockets.asyncio.client import ClientConnection

    class Ending(ClientConnection):
        ending: asyncio.TimerHandle | None = None

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.ending is None and self.protocol.close_expected():
                self.ending = self.loop.call_later(_PATIENCE, self.transport.abort)

    return Ending


async def _inwards(upstream: ClientConnection, first: asyncio.Future[Message], receive: Receive) -> None:
    message = await first
    while message["type"] == "websocket.receive":
        data = message.get("bytes")
        await upstream.send(message["text"] if data is None else data)
        message = await receive()
    code = message.get("code", _NORMAL)
    async with asyncio.timeout(_PATIENCE):
        await upstream.close(_NORMAL + 1 if code in _NO_CODE else code, message.get("reason") or "")


async def _outwards(upstream: ClientConnection, send: Send) -> None:
    from websockets.exceptions import ConnectionClosed

    try:
        while True:
            data = await upstream.recv()
            await send({"type": "websocket.send", "text" if isinstance(data, str) else "bytes": data})
    except ConnectionClosed as closed:
        said = closed.rcvd
        code = _BROKEN if said is None else _NORMAL if said.code in _NO_CODE else int(said.code)
        reason = "" if said is None else said.reason
        await send({"type": "websocket.close", "code": code, "reason": reason})


async def _refuse(scope: Scope, send: Send, status: int, fields: Headers, body: bytes) -> None:
    """Answer the handshake with a status; a server that cannot do so answers 403 by itself."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": _BROKEN})
        return
    start: Message = {"type": "websocket.http.response.start", "status": status, "headers": fields}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": body})


def _pairs(response: Any) -> Headers:
    return [] if response is None else [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.raw_items()
    ]  # fmt: skip
