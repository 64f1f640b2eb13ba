"""Whether this process should be given requests, in one word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from lastword_shim._core import Core
    from lastword_shim.engine import Condition

Word = Literal["ready", "draining", "stalled"]
READY: Final = "ready"


def readiness(core: Core) -> Word | Condition:
    """``ready``, or what is in the way; nobody is asked for it, so it answers while the engine hangs."""
    if core.drain.draining:
        return "draining"
    condition = core.engine.condition() if core.engine is not None else None
    if condition is not None:
        return condition
    return "stalled" if core.register.progress.stalled(core.settings.stall_after) else READY
