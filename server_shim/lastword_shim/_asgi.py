"""The middleware: what is left alone, what becomes an `Exchange`, and the application's start and stop."""

from __future__ import annotations

import logging
import os
import sys
from typing import Final

from lastword_shim._core import Core
from lastword_shim._settings import Settings, SettingsError
from lastword_shim._start import start_line, unknown_names
from lastword_shim.admission.refusals import shutting_down
from lastword_shim.endpoints.routes import ROOT, Endpoints
from lastword_shim.engine import Engine
from lastword_shim.exchange.exchange import Exchange
from lastword_shim.protocol.routes import LEFT_ALONE, PROBES
from lastword_shim.protocol.settling import answer_alone
from lastword_shim.protocol.wire import App, Receive, Scope, Send, path_of

_log: Final = logging.getLogger("lastword_shim")


class Shim:
    """ASGI middleware that gives every request exactly one honest last word.

    ``settings`` default to the environment's; ``engine`` to the one found behind the application, if any.  A setting
    that cannot be used fails the application's start with a message that names it.
    """

    def __init__(self, app: App, *, settings: Settings | None = None, engine: Engine | None = None) -> None:
        self.app = app
        self._engine = engine
        self._core: Core | None = None
        self._endpoints: Endpoints | None = None
        self._attached = False
        self._fault: str | None = None
        _log_somewhere()
        unknown = unknown_names(os.environ) if settings is None else None
        if unknown is not None:
            _log.warning("%s", unknown)
        try:
            self._core = Core.build(settings or Settings.load())
            if self._core.settings.endpoints:
                self._endpoints = Endpoints(self._core, app)
        except SettingsError as error:
            # Raising here would leave a server that answers 500 to everything: the stack is built at the first call.
            self._fault = str(error)

    @property
    def fault(self) -> str | None:
        """The setting that cannot be used, so that the application's start will fail; None if all can."""
        return self._fault

    @property
    def open_requests(self) -> int:
        """How many have not had their last word."""
        return len(self._core.register) if self._core is not None else 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI 3."""
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif scope["type"] != "http":
            await self.app(scope, receive, send)
        elif self._core is None:  # a server without lifespan: nothing has stopped its start
            raise SettingsError(self._fault)
        else:
            self._attach(scope)
            await self._http(self._core, scope, receive, send)

    async def drain(self, timeout: float) -> None:
        """Refuse new requests, let open ones run for ``timeout`` seconds, then end them with their terminals."""
        if self._core is not None:
            await self._core.drain.run(timeout)
            await self._core.recorder.drained()

    async def _http(self, core: Core, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope)
        if path in PROBES:
            if core.drain.draining:  # balancers should go elsewhere now
                status, headers, body = answer_alone(shutting_down(), draining=True)
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": body, "more_body": False})
            else:
                await self.app(scope, receive, send)
        elif path.rstrip("/") in LEFT_ALONE or _is_preflight(scope):
            await self.app(scope, receive, send)
        elif self._endpoints is not None and path.startswith(ROOT):
            await self._endpoints.serve(scope, send, path)
        else:
            with core.spanned(scope) as inward:
                await Exchange(core, inward, receive, send).run(self.app)

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = self._fault
        if fault is None:
            self._attach(scope)
            if self._core is not None and self._engine is not None:
                fault = self._engine.fault(self._core.settings)
        if fault is not None:
            await receive()
            _log.error("%s", fault)
            await send({"type": "lifespan.startup.failed", "message": f"lastword_shim: {fault}"})
            return
        await self.app(scope, receive, send)

    def _attach(self, scope: Scope) -> None:
        """Find the engine and the CORS settings of the application; once, as soon as there is one to look at."""
        if self._attached or self._core is None:
            return
        self._attached = True
        outer = scope.get("app")
        state = getattr(outer, "state", None)
        if self._engine is None and "vllm" in sys.modules and hasattr(state, "engine_client"):
            from lastword_shim.engine.vllm import VllmEngine

            self._engine = VllmEngine(state)
        if self._engine is not None:
            self._engine.attach(self)
            self._core.engine = self._engine
        for middleware in getattr(outer, "user_middleware", ()):
            if getattr(middleware.cls, "__name__", "") == "CORSMiddleware":
                self._core.cors = (middleware.cls, middleware.args, middleware.kwargs)
        level, line = start_line(self._core.settings, self._engine)
        _log.log(level, "lastword_shim is mounted; %s", line)


def _is_preflight(scope: Scope) -> bool:
    asked = any(name.lower() == b"access-control-request-method" for name, _ in scope["headers"])
    return asked and bool(scope["method"] == "OPTIONS")


def _log_somewhere() -> None:
    """Where nobody has set logging up for us, as in a bare server process, the log goes to standard error."""
    if not _log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(levelname)s %(asctime)s [%(name)s] %(message)s"))
        _log.addHandler(handler)
        _log.setLevel(logging.INFO)
