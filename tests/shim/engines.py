"""An engine as the shim knows it, beside the scripted applications."""

from __future__ import annotations

from lastword._classify import ErrorInfo
from lastword_shim import Settings
from lastword_shim.engine import Condition, Host, Remark, Ticket


class Counting:
    """An engine that sees its tokens."""

    state: Condition | None = None
    provider = "unknown"
    counts_tokens = True
    title = "scripted"

    def attach(self, host: Host) -> None: ...

    def fault(self, settings: Settings) -> str | None:
        return None

    def processes(self) -> int:
        return 1

    def remarks(self, settings: Settings) -> tuple[Remark, ...]:
        return ()

    def condition(self) -> Condition | None:
        return self.state

    def refresh(self, ticket: Ticket) -> bool:
        return True

    async def release(self, ticket: Ticket) -> None: ...

    def restate(self, error: ErrorInfo, ticket: Ticket) -> ErrorInfo:
        return error

    def explain(self, error: BaseException) -> ErrorInfo | None:
        return None
