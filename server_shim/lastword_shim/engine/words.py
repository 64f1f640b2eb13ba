"""Words of engines that mislead, whether the engine is in this process or behind HTTP."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from lastword._classify import ErrorInfo
from lastword._codes import Code
from lastword_shim.engine import Ticket

_OVER_THE_CONTEXT: Final = re.compile(r"=(\d+) cannot be greater than max_model_len=(\d+)")
_NO_ROOM: Final = "max_tokens must be at least 1, got 0"


def restate(error: ErrorInfo, ticket: Ticket, *, limit: int | None) -> ErrorInfo:
    """Two of vLLM's answers to what does not fit the context name max_tokens only, one of them as if it were 0.

    ``limit`` is the context's size in tokens; None where it is not known.
    """
    too_many = _OVER_THE_CONTEXT.search(error.message)
    if too_many is not None and error.code == Code.INVALID_REQUEST_ERROR:
        details = {"max_tokens": int(too_many[1]), "max_model_len": int(too_many[2])}
    elif error.message.startswith(_NO_ROOM) and ticket.max_tokens != 0:
        size = "" if limit is None else f" of {limit} tokens"
        details = {} if limit is None else {"prompt_tokens": limit, "max_model_len": limit}
        message = f"The prompt fills the model's context{size}, so that no token can be generated."
        error = replace(error, message=message, raw=None)
    else:
        return error
    return replace(error, code=str(Code.CONTEXT_LENGTH_EXCEEDED), details={**error.details, **details})
