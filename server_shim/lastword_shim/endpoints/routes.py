"""The routes under ``/lastword/``: which there are, who may use them, and with which methods."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from lastword._classify import is_request_id
from lastword._codes import CODES, Code
from lastword_shim.endpoints.access import Access
from lastword_shim.endpoints.call import Call, NotServed, not_served
from lastword_shim.endpoints.cancelling import Cancelling
from lastword_shim.endpoints.listing import STATES, listing
from lastword_shim.endpoints.metrics_text import CONTENT_TYPE, metrics_text
from lastword_shim.endpoints.ready import READY, readiness
from lastword_shim.protocol.wire import App, Scope, Send

if TYPE_CHECKING:
    from lastword_shim._core import Core

ROOT: Final = "/lastword/"
_READY: Final = "ready"
_METRICS: Final = "metrics"
_REQUESTS: Final = "requests"
_CANCEL: Final = re.compile("requests/(.*)/cancel", re.DOTALL)
_MODELS: Final = "/v1/models"
_MOST_FIELDS: Final = 100


class Endpoints:
    """Serves them.  ``app`` is the application inside of the shim; it is asked whose keys are good."""

    def __init__(self, core: Core, app: App) -> None:
        self._core = core
        self._access = Access(core, app)
        self._cancelling = Cancelling(core.register)

    async def serve(self, scope: Scope, send: Send, path: str) -> None:
        """Answer a request for ``path``, which begins with `ROOT`."""
        call = Call(self._core, scope, send)
        name = path.removeprefix(ROOT)
        try:
            if name == _READY:
                _only(call, "GET", "HEAD")
                word = readiness(self._core)
                await call.say(200 if word == READY else 503, word.encode())
            elif name == _METRICS:
                _only(call, "GET", "HEAD")
                await call.say(200, metrics_text(), CONTENT_TYPE)
            elif name == _REQUESTS:
                _only(call, "GET", "HEAD")
                await self._let_in(call, path)
                await self._list(call)
            elif cancel := _CANCEL.fullmatch(name):
                _only(call, "POST")
                await self._let_in(call, path)
                await self._cancel(call, cancel[1])
            else:
                raise not_served(Code.NOT_FOUND, CODES[Code.NOT_FOUND].brief)
        except NotServed as refusal:
            await call.refuse(refusal)

    async def _let_in(self, call: Call, path: str) -> None:
        engine = self._core.engine
        if engine is not None and engine.processes() > 1:
            raise not_served(
                Code.NOT_IMPLEMENTED,
                "Several API server processes share this engine, and each knows only its own requests. Start one API "
                "server (--api-server-count 1), or put `lastword shim --upstream URL` in front of all of them.",
            )
        prefix = call.scope["path"].removesuffix(path)  # a root_path that is part of the path
        await self._access.check(call, f"{prefix}{_MODELS}")

    async def _list(self, call: Call) -> None:
        asked = _query(call.scope)
        unknown = sorted(set(asked.get("state", ())) - set(STATES))
        if unknown:
            message = f"The query's state must be one of {', '.join(STATES)}."
            raise not_served(Code.INVALID_REQUEST_ERROR, message, param="state")
        await call.answer(
            listing(
                self._core.register,
                call.credential,
                now=time.monotonic(),
                states=asked.get("state", ()),
                models=asked.get("model", ()),
            )
        )

    async def _cancel(self, call: Call, request_id: str) -> None:
        if not is_request_id(request_id):
            message = "A request id in the path has from 1 to 128 letters, digits and - _ . : only."
            raise not_served(Code.INVALID_REQUEST_ERROR, message, param="request_id")
        cancelled = await self._cancelling.cancel(call.credential, request_id)
        if not cancelled:
            message = "No open request of yours has this id; it may have ended."
            raise not_served(Code.NOT_FOUND, message, param="request_id")
        await call.answer({"request_id": request_id, "cancelled": cancelled})


def _only(call: Call, *methods: str) -> None:
    if call.method not in methods:
        allow = [(b"allow", ", ".join(methods).encode())]
        raise not_served(Code.METHOD_NOT_ALLOWED, CODES[Code.METHOD_NOT_ALLOWED].brief, headers=allow)


def _query(scope: Scope) -> dict[str, list[str]]:
    text = scope.get("query_string", b"").decode("latin-1")
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        message = f"The query has more than {_MOST_FIELDS} fields."
        raise not_served(Code.INVALID_REQUEST_ERROR, message) from None
