"""What an engine's own word for the end of a generation means, where the answer's protocol has no place for it."""

from __future__ import annotations

from collections.abc import Collection

from lastword._classify import ErrorInfo, make_error
from lastword._codes import FINISH_REASONS, Code


def engine_fault(finish_reasons: Collection[str]) -> ErrorInfo | None:
    """The error that one of the engine's finish_reasons stands for (FIN-2), None if none does."""
    for reason in sorted(finish_reasons):
        known = FINISH_REASONS.get(reason)
        if known is not None and known.code is not None:
            return _error(known.code, reason)
    return None


def unknown_fault(reason: str) -> ErrorInfo | None:
    """The error that an answer's own word stands for: a bad one's, or that nobody here knows it (FIN-3)."""
    known = FINISH_REASONS.get(reason)
    if known is not None:
        return None if known.code is None else _error(known.code, reason)
    message = f"the answer ended with the reason {reason!r}, which this version does not know"
    return make_error(Code.UNKNOWN_FINISH_REASON, message, origin="engine", details={"finish_reason": reason})


def _error(code: Code, reason: str) -> ErrorInfo:
    message = f"the engine ended the answer with finish_reason {reason!r}"
    return make_error(code, message, origin="engine", details={"finish_reason": reason})
