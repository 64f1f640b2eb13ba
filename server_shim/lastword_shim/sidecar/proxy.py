"""The application that the middleware goes round: it hands each request to the upstream, and the answer back as it comes."""

from __future__ import annotations

from lastword_shim.protocol.settling import answer_alone
from lastword_shim.protocol.wire import Receive, Scope, Send
from lastword_shim.sidecar.failures import Broken, CannotConnect, Gone, UpstreamError
from lastword_shim.sidecar.health import Health
from lastword_shim.sidecar.passage import Passage
from lastword_shim.sidecar.pool import Pool
from lastword_shim.sidecar.websocket import relay


class Proxy:
    """A reverse proxy as an ASGI application.  A failure of the upstream is raised, to whoever can tell it."""

    def __init__(self, pool: Pool, health: Health) -> None:
        self._pool = pool
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI 3."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await relay(self._pool, scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        passage = Passage(self._pool, scope, receive, send)
        try:
            await passage.run()
        except UpstreamError as error:
            told = await self._better(error)
            if passage.ticket is not None:
                raise told from error
            if not passage.answering:
                status, fields, body = answer_alone(told.info())
                await send({"type": "http.response.start", "status": status, "headers": fields})
                await send({"type": "http.response.body", "body": body})
        else:
            self._health.heard(reachable=True)

    async def _better(self, error: UpstreamError) -> UpstreamError:
        """A connection that broke is one thing, an engine that died of it another."""
        if isinstance(error, CannotConnect):
            self._health.heard(reachable=False)
        elif type(error) is Broken:
            try:
                if await self._health.is_gone():
                    return Gone(f"{error}, and nothing listens there any more")
            except UpstreamError as unseen:
                return Broken(f"{error}; whether anything listens there could not be seen: {unseen}")
        return error

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        self._health.close()
        self._pool.close()
        await send({"type": "lifespan.shutdown.complete"})
