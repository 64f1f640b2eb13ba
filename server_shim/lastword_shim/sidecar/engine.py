"""Any engine behind HTTP: nothing of it is seen but what passes, and whether it answers.

Tokens are what the wire shows, so none are counted once a client has left; prompts are what an answer's usage says;
times in the queue are the engine's own where its answers tell them (see ``stated``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lastword._classify import ErrorInfo
from lastword_shim._settings import Settings
from lastword_shim.engine import Condition, Host, Remark, Ticket, words
from lastword_shim.sidecar.failures import UpstreamError
from lastword_shim.sidecar.health import Health


class HttpEngine:
    """The engine behind one upstream."""

    provider: Final = "unknown"
    counts_tokens: Final = False
    title: Final = "any behind HTTP, so it sees only what passes"

    def __init__(self, health: Health) -> None:
        self._health = health

    def attach(self, host: Host) -> None:
        """Nothing to wrap."""

    def fault(self, settings: Settings) -> str | None:
        """Nothing that would have to stop the start."""
        return None

    def remarks(self, settings: Settings) -> Iterable[Remark]:
        """Nothing that could be known before the upstream answers."""
        return ()

    def condition(self) -> Condition | None:
        """Whether the upstream answers, and whether it says that it is not ready."""
        return self._health.condition

    def processes(self) -> int:
        """One: who else sends requests there is not known."""
        return 1

    def refresh(self, ticket: Ticket) -> bool:
        """Nobody counts but the wire."""
        return False

    async def release(self, ticket: Ticket) -> None:
        """The connection has been closed; there is no other way to tell it."""

    def explain(self, error: BaseException) -> ErrorInfo | None:
        """What became of the connection to the upstream."""
        return error.info() if isinstance(error, UpstreamError) else None

    def restate(self, error: ErrorInfo, ticket: Ticket) -> ErrorInfo:
        """vLLM's words, which may stand behind it, mislead there too."""
        return words.restate(error, ticket, limit=None)
