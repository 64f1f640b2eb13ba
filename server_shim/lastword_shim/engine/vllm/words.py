"""What vLLM's own words mean, where they mislead."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from lastword._classify import ErrorInfo, classify_response, make_error
from lastword._codes import CODES, Code
from lastword_shim.engine import Ticket

_OVER_THE_CONTEXT: Final = re.compile(r"=(\d+) cannot be greater than max_model_len=(\d+)")
_NO_ROOM: Final = "max_tokens must be at least 1, got 0"


def explain(error: BaseException) -> ErrorInfo | None:
    """As vLLM's own handlers would have answered."""
    if not isinstance(error, Exception):
        return None
    try:
        from vllm.entrypoints.serve.exception_handling.error_response import create_error_response

        answer = create_error_response(error)
        return classify_response(int(answer.error.code), {}, answer.model_dump_json().encode())
    except Exception:  # noqa: BLE001 (the module is vLLM's own business; without it the error is a plain 500)
        return None


def restate(error: ErrorInfo, ticket: Ticket, *, limit: int | None, dead: bool) -> ErrorInfo:
    """Two of vLLM's answers to what does not fit the context name max_tokens only, one of them as if it were 0."""
    too_many = _OVER_THE_CONTEXT.search(error.message)
    if too_many is not None and error.code == Code.INVALID_REQUEST_ERROR:
        details = {"max_tokens": int(too_many[1]), "max_model_len": int(too_many[2])}
    elif error.message.startswith(_NO_ROOM) and ticket.max_tokens != 0 and limit is not None:
        details = {"prompt_tokens": limit, "max_model_len": limit}
        message = f"The prompt fills the model's context of {limit} tokens, so that no token can be generated."
        error = replace(error, message=message, raw=None)
    elif error.code == Code.INTERNAL_SERVER_ERROR and dead:
        # In an answer that has begun, vLLM's own wrappers leave nothing of what its engine died of.
        return make_error(Code.ENGINE_UNAVAILABLE, CODES[Code.ENGINE_UNAVAILABLE].brief, origin="engine")
    else:
        return error
    return replace(error, code=str(Code.CONTEXT_LENGTH_EXCEEDED), details={**error.details, **details})
