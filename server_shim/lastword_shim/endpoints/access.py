"""Whether a caller holds a key of the engine's: its own application is asked, so that no other check can disagree.

An engine that guards ``/v1/models`` says what it takes for a key, whatever it is and wherever it comes from.  One that
shows its models to everybody lets everybody ask here too, and each sees only what is his own.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from lastword._codes import CODES, Code
from lastword_shim.endpoints.call import Call, NotServed, not_served
from lastword_shim.endpoints.question import Question
from lastword_shim.exchange.credential import is_named
from lastword_shim.protocol.wire import App, Headers

if TYPE_CHECKING:
    from lastword_shim._core import Core

PATIENCE: Final = 2.0
"""Seconds that the application gets to say whether it takes a key."""
REMEMBERED: Final = 5.0
"""Seconds for which its answer holds."""
MOST_REMEMBERED: Final = 1024
"""Keys whose answers are kept, right and wrong ones together."""
MOST_ASKED: Final = 32
"""Questions at a time; one more is not put."""


class Access:
    """The keys that the application behind the shim takes."""

    def __init__(self, core: Core, app: App) -> None:
        self._core = core
        self._app = app
        self._asked = 0
        self._known: OrderedDict[bytes, tuple[float, NotServed | None]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[NotServed | None]] = {}

    async def check(self, call: Call, models: str) -> None:
        """Return if the caller may come in; ``models`` is the path to ask for.

        Raises:
            NotServed: the application does not take these credentials, or cannot be asked.
        """
        refusal = await self._refusal(call, models)
        if refusal is not None:
            raise NotServed(refusal.error, refusal.headers)  # a fresh one: the remembered one would gather tracebacks

    async def _refusal(self, call: Call, models: str) -> NotServed | None:
        credential = call.credential
        if not is_named(call.scope["headers"]):
            return await self._ask(call, models)  # what else tells callers apart is not known, so nothing is remembered
        if self._is_at_work(credential):
            return None
        until, refusal = self._known.get(credential, (0.0, None))
        if time.monotonic() < until:
            return refusal
        asking = self._asking.get(credential)
        if asking is None:
            asking = self._asking[credential] = asyncio.create_task(self._find_out(call, models))
            asking.add_done_callback(lambda _: self._asking.pop(credential, None))
        return await asyncio.shield(asking)  # others may wait for it too

    def _is_at_work(self, credential: bytes) -> bool:
        """Whether the engine has let these credentials in, and works for them now."""
        return any(
            exchange.credential == credential
            and (exchange.life.ticket.submitted_at is not None or exchange.life.first_token_at is not None)
            for exchange in self._core.register
        )

    async def _find_out(self, call: Call, models: str) -> NotServed | None:
        refusal = await self._ask(call, models)
        if refusal is None or refusal.error.code in {Code.UNAUTHORIZED, Code.PERMISSION_DENIED}:
            self._known[call.credential] = time.monotonic() + REMEMBERED, refusal
            self._known.move_to_end(call.credential)
            if len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
        return refusal

    async def _ask(self, call: Call, models: str) -> NotServed | None:
        if self._asked >= MOST_ASKED:
            return not_served(Code.ENGINE_UNAVAILABLE, "Too many keys are being checked at this moment.")
        self._asked += 1
        try:
            question = Question(call.scope, models)
            await question.put(self._app, PATIENCE)
        finally:
            self._asked -= 1
        return _judge(question.status, question.headers)


def _judge(status: int | None, headers: Headers) -> NotServed | None:
    match status:
        case None:
            return not_served(Code.ENGINE_UNAVAILABLE, "The engine did not say in time whether it takes this key.")
        case 401 | 403:
            code = Code.UNAUTHORIZED if status == 401 else Code.PERMISSION_DENIED
            challenge = [(name, value) for name, value in headers if name.lower() == b"www-authenticate"]
            return not_served(code, CODES[code].brief, headers=challenge)
        case 404 | 405 | 501:
            return not_served(
                Code.NOT_IMPLEMENTED, "The engine has no /v1/models, which would tell whether a key is good."
            )
        case _ if 200 <= status < 300:
            return None
    return not_served(Code.ENGINE_UNAVAILABLE, "The engine could not say whether it takes this key.")
