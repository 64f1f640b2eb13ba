"""How one exchange tells its client that it failed: the most that is known, in the contract's words, within a time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from lastword._classify import ErrorInfo
from lastword._codes import Code
from lastword_shim.exchange.inbound import Inbound
from lastword_shim.exchange.outbound import Outbound
from lastword_shim.protocol.readings import Verdict
from lastword_shim.protocol.settling import Context, settle
from lastword_shim.protocol.wire import Scope

if TYPE_CHECKING:
    from lastword_shim._core import Core

_log: Final = logging.getLogger("lastword_shim")
SEND_PATIENCE: Final = 5.0
"""Seconds that a client gets to take a terminal; while the server is stopping, a tenth of it."""


class Teller:
    """``told`` is the error as it was sent, None before."""

    def __init__(self, core: Core, scope: Scope, inbound: Inbound, outbound: Outbound) -> None:
        self._core = core
        self._scope = scope
        self._in = inbound
        self._out = outbound
        self.told: ErrorInfo | None = None

    async def tell(self, verdict: Verdict, *, hurry: bool = False) -> None:
        """Send the verdict's error."""
        core, settings = self._core, self._core.settings
        draining = core.drain.draining
        context = Context(
            self._in.request_id, self._in.attempt, draining, settings.overload_status, secrets=self._in.secrets
        )
        self.told, status = settle(self._best(verdict), context)
        said = await self._out.fail(
            self.told,
            status,
            kind=self._in.ask.kind,
            inner_headers=self._out.headers or await core.cors_headers(self._scope),
            patience=SEND_PATIENCE / 10 if draining or hurry else SEND_PATIENCE,
        )
        if not said:
            _log.warning("request_id=%s code=%s could not be told to the client", self._in.request_id, self.told.code)

    def _best(self, verdict: Verdict) -> ErrorInfo:
        """The most that is known: our own refusal rather than how the engine's application put it."""
        assert verdict.error is not None
        ticket, engine = self._in.ticket, self._core.engine
        if verdict.by_engine and ticket.refusal is not None:
            return ticket.refusal
        if not verdict.by_engine:
            return verdict.error
        error = engine.restate(verdict.error, ticket) if engine else verdict.error
        return self._core.places.refused_by_engine(error) if error.code == Code.QUEUE_OVERLOADED else error
