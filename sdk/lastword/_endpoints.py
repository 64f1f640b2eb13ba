"""The endpoints: where each is, how its answer is proven whole, and which type it becomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from lastword import _models
from lastword._call import Call


@dataclass(frozen=True, slots=True)
class Endpoint:
    """``answer``, ``async_answer`` and ``chunk`` give the function that builds the openai package's type."""

    method: str
    path: str
    generates: bool
    answer: Callable[[], _models.Build]
    async_answer: Callable[[], _models.Build]
    chunk: Callable[[], _models.Build]


CHAT: Final = Endpoint(
    "POST", "/chat/completions", True, _models.chat_completion, _models.chat_completion, _models.chat_chunk
)
COMPLETIONS: Final = Endpoint("POST", "/completions", True, _models.completion, _models.completion, _models.completion)
MODELS: Final = Endpoint("GET", "/models", False, _models.model_page, _models.async_model_page, _models.model_page)


def read_answer(endpoint: Endpoint, call: Call, body: bytes, build: _models.Build) -> Any:
    """The result of a call without a stream; raises ``LastwordError`` if ``body`` is an error or not whole."""
    refusal = call.refusal(body)
    if refusal is not None:
        raise refusal
    assert call.answer is not None
    try:
        parsed = json.loads(body.decode("utf-8-sig", "replace"))  # as forgiving as a stream's decoder
    except (ValueError, RecursionError) as error:
        kind = call.answer.headers.get("content-type", "no content type")
        raise call.malformed(f"HTTP {call.answer.status} with a body that is no JSON ({kind})", body) from error
    if endpoint.generates:
        call.tracker.accept_body(parsed)
        failure = call.ended("complete", pending=False)
        if failure is not None:
            raise failure
    elif not isinstance(parsed, dict) or not isinstance(parsed.get("data"), list):
        raise call.malformed("the answer has no list named data", body)
    return _models.with_request_id(build(parsed), call.request_id)
