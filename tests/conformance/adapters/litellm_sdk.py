"""litellm's SDK: ``acompletion`` and ``atext_completion`` for an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}  # read on import: no network

import httpx
import litellm
import openai
from caller import Call, Heard, Result, make
from codes import class_code, failed
from openai_shapes import Choices
from protocol import serve

litellm.suppress_debug_info = True  # it prints an invitation to give feedback with every error

CODES = {  # the most special class first
    litellm.ContextWindowExceededError: "context_length_exceeded",
    litellm.ContentPolicyViolationError: "content_filtered",
    openai.APITimeoutError: "connect_timeout",  # connect is the only limit that a case sets for it
    openai.APIConnectionError: "connection_failed",
    openai.APIResponseValidationError: "malformed_response",
    openai.APIStatusError: "invalid_request_error",
    openai.APIError: "internal_server_error",
}
SPECIAL = ("context_length_exceeded", "content_filtered")
NOTE = (
    "Context overflow and content policy by class, a MidStreamFallbackError round a connection error as a cut stream, else "
    "the error's code, HTTP status or class; retries are max_retries."
)


@asynccontextmanager
async def opened(case: Call) -> AsyncIterator[dict[str, Any]]:
    call = case["call"]
    options = {"api_base": case["base_url"], "api_key": case["api_key"], "max_retries": call["retries"]}
    if "connect" in call["timeouts"]:
        options["timeout"] = httpx.Timeout(openai.DEFAULT_TIMEOUT.read, connect=call["timeouts"]["connect"])
    yield options


async def read(options: dict[str, Any], call: Call, heard: Heard) -> None:
    request = {name: value for name, value in call["request"].items() if name != "model"}
    choices = Choices(heard)
    if call["endpoint"] == "completions":
        answer: Any = await litellm.atext_completion(model="text-completion-openai/m", **request, **options)
    else:
        answer = await litellm.acompletion(model="openai/m", **request, **options)
    if not call["stream"]:
        choices.answer(answer)
        return
    try:
        async for chunk in answer:
            choices.chunk(chunk)
    finally:
        if hasattr(answer, "aclose"):  # that of chat has it, that of completions has not
            await answer.aclose()


def failure(error: Exception) -> Result:
    code = class_code(error, CODES)
    status: Any = getattr(error, "status_code", None)
    word = getattr(error, "code", None) or status  # which is now and then the code
    if isinstance(
        error, litellm.exceptions.MidStreamFallbackError
    ):  # it wraps what broke the stream off, and gives that its status
        cut = isinstance(error.original_exception, openai.APIConnectionError)
        word = "stream_incomplete" if cut else getattr(error.original_exception, "code", None)
    elif code in SPECIAL or (code == "connect_timeout" and status == 408):  # its own timeout calls itself 408
        word = code
    return failed(code, code=word, status=status, message=getattr(error, "message", str(error)))


if __name__ == "__main__":
    serve(
        lambda case: asyncio.run(make(case, opened, read, failure)),
        name="litellm",
        version=importlib.metadata.version("litellm"),
        capabilities=["cancel", "completions", "connect", "retry", "tools"],
        note=NOTE,
    )
