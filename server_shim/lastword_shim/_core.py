"""What the exchanges of one process share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lastword_shim._settings import Settings, SettingsError
from lastword_shim.account.metrics import Metrics, metrics
from lastword_shim.account.recorder import Recorder
from lastword_shim.admission.bounds import Bounds
from lastword_shim.admission.estimate import Rate
from lastword_shim.admission.places import Places
from lastword_shim.engine import Engine
from lastword_shim.exchange.drain import Drain
from lastword_shim.exchange.register import Register
from lastword_shim.protocol.wire import Headers, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from lastword_shim.account.otel import Telemetry


@dataclass(slots=True)
class Core:
    """One process's settings, limits, accounts and engine."""

    settings: Settings
    register: Register
    drain: Drain
    places: Places
    rate: Rate
    metrics: Metrics
    recorder: Recorder
    engine: Engine | None = None
    cors: tuple[type[Any], Sequence[Any], dict[str, Any]] | None = None
    telemetry: Telemetry | None = None

    @classmethod
    def build(cls, settings: Settings) -> Core:
        """A fresh one.

        Raises:
            SettingsError: OpenTelemetry is asked for and cannot be had.
        """
        known, register = metrics(), Register()
        core = cls(
            settings, register, Drain(register), Places(Bounds.of(settings)), Rate(), known, Recorder(None, known)
        )
        core.telemetry = _telemetry(core) if settings.otel else None
        core.recorder = Recorder(
            settings.records,
            known,
            max_bytes=settings.records_max_bytes or None,
            keep=settings.records_keep,
            telemetry=core.telemetry,
        )
        return core

    def spanned(self, scope: Scope) -> AbstractContextManager[Scope]:
        """A span round one request, if there are to be any; gives the scope for what is inside."""
        return nullcontext(scope) if self.telemetry is None else self.telemetry.request(scope)

    async def cors_headers(self, scope: Scope) -> Headers:
        """The headers that the application's own CORS middleware, which stands inside of us, gives to an answer."""
        kept: Headers = []
        if self.cors is not None:
            middleware, arguments, options = self.cors

            async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
                await send({"type": "http.response.start", "status": 500, "headers": []})

            async def keep(message: Message) -> None:
                kept.extend(message.get("headers", ()))

            await middleware(answer, *arguments, **options)({**scope, "method": "POST"}, None, keep)
        return kept


def _telemetry(core: Core) -> Telemetry:
    from lastword_shim.account.otel import Telemetry  # only where it is wanted: it needs an extra
    from lastword_shim.account.otel_providers import OtelError

    try:
        return Telemetry(lambda: core.engine.provider if core.engine is not None else "unknown")
    except OtelError as error:
        raise SettingsError(str(error)) from None
