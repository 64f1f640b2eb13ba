"""What the embedded engine makes of a request: vLLM's checks, in vLLM's words."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, Final

from lastword_shim.engine import Refusal, current
from lastword_shim.engine.embedded.shapes import DEFAULT_TOKENS, MODEL, REFUSALS, Answer, Ending, error_body

if TYPE_CHECKING:
    from collections.abc import Mapping

_BAD: Final = "BadRequestError"


class RefusedError(Exception):
    """A request that gets an error answer: its HTTP status and vLLM's body for it."""

    def __init__(self, status: int, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(status, kind, message, param)


def admit(
    path: str, headers: Mapping[str, str], raw: bytes, *, number: int, max_model_len: int
) -> tuple[dict[str, Any], Answer]:
    """Check a request; give its body and the answer to be made, or raise ``RefusedError``.

    ``number`` names the answer of a caller that sent no ``x-request-id``; ``max_model_len`` is in tokens.
    """
    ending = _ending(headers)
    if ending in REFUSALS:
        raise RefusedError(*REFUSALS[ending])
    body = _parse(raw)
    chat = path == "/v1/chat/completions"
    prompts = _prompts(body, chat=chat)
    if body.get("model", MODEL) != MODEL:
        raise RefusedError(404, "NotFoundError", f"The model `{body['model']}` does not exist.", "model")
    longest = max(len(prompt.split()) for prompt in prompts)
    if longest > max_model_len:
        raise RefusedError(400, _BAD, _too_long(max_model_len, longest), "input_tokens")
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    if asked is not None and (not isinstance(asked, int) or asked < 1):
        raise RefusedError(400, _BAD, f"max_tokens must be at least 1, got {asked}.", "max_tokens")
    n = body.get("n") or 1
    if not isinstance(n, int) or n < 1:
        raise RefusedError(400, _BAD, f"n must be at least 1, got {n}.", "n")
    # As in vLLM, what does not fit is cut without a word.
    max_tokens = max(1, min(asked or DEFAULT_TOKENS, max_model_len - longest))
    _tell_shim(prompts, max_model_len, sequences=n * len(prompts), effective=max_tokens)
    return body, Answer(
        id=("chatcmpl-" if chat else "cmpl-") + headers.get("x-request-id", f"embedded-{number}"),
        chat=chat,
        choices=n * len(prompts),
        prompt_tokens=sum(len(prompt.split()) for prompt in prompts),
        max_tokens=max_tokens,
        seed=int(body.get("seed") or zlib.crc32(raw)),
        ending=ending,
        limited=asked is not None,
        include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def _tell_shim(prompts: list[str], max_model_len: int, *, sequences: int, effective: int) -> None:
    ticket = current()
    if ticket is None:  # bare
        return
    try:
        for prompt in prompts:
            ticket.admit(len(prompt.split()), max_model_len=max_model_len)
    except Refusal as error:
        raise RefusedError(400, _BAD, str(error), "max_tokens") from error
    ticket.effective_max_tokens = effective
    ticket.submitted(sequences=sequences)
    ticket.counting()
    ticket.scheduled()


def _ending(headers: Mapping[str, str]) -> Ending:
    name = headers.get("x-demo-ending", Ending.COMPLETE)
    try:
        return Ending(name)
    except ValueError:
        known = ", ".join(Ending)
        raise RefusedError(400, _BAD, f"x-demo-ending: {name!r} is not one of {known}", "x-demo-ending") from None


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError as error:
        message = f"1 validation error:\n  {{'type': 'json_invalid', 'msg': '{error}'}}"
        raise RefusedError(400, "Bad Request", message, "body") from error
    if not isinstance(body, dict):
        raise RefusedError(400, "Bad Request", "1 validation error:\n  {'type': 'dict_type'}", "body")
    return body


def _prompts(body: Mapping[str, Any], *, chat: bool) -> list[str]:
    name = "messages" if chat else "prompt"
    given = body.get(name)
    if given is None:
        message = f"1 validation error:\n  {{'type': 'missing', 'loc': ('body', '{name}'), 'msg': 'Field required'}}"
        raise RefusedError(400, "Bad Request", message, f"body.{name}")
    if chat:
        return [" ".join(str(each.get("content")) if isinstance(each, dict) else str(each) for each in given)]
    return [str(each) for each in given] if isinstance(given, list) and given else [str(given)]


def _too_long(limit: int, tokens: int) -> str:
    return (
        f"This model's maximum context length is {limit} tokens. However, your prompt contains {tokens} input tokens, "
        "which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "
        f"(parameter=input_tokens, value={tokens})"
    )
