"""What vLLM's own words mean, where they mislead."""

from __future__ import annotations

from lastword._classify import ErrorInfo, classify_response, make_error
from lastword._codes import CODES, Code
from lastword_shim.engine import Ticket, words


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
    """Words that mislead about the context; and what is left of an engine's death in an answer that has begun."""
    if error.code == Code.INTERNAL_SERVER_ERROR and dead:  # vLLM's own wrappers leave nothing of what it died of
        return make_error(Code.ENGINE_UNAVAILABLE, CODES[Code.ENGINE_UNAVAILABLE].brief, origin="engine")
    return words.restate(error, ticket, limit=limit)
