"""pydantic-ai: an agent over its OpenAI chat model; ``run_stream`` for streams, ``run`` for the rest."""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from caller import Call, Heard, Result, make
from codes import class_code, failed
from protocol import serve
from pydantic_ai import Agent, exceptions
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import create_async_httpx2_client
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings


class Incomplete(Exception):
    """The response says of itself that it is not complete."""


CODES = {  # the most special class first
    Incomplete: "stream_incomplete",
    exceptions.ModelQuotaExceededError: "quota_exceeded",
    exceptions.ModelRateLimitError: "rate_limit_exceeded",
    exceptions.ModelOverloadedError: "queue_overloaded",
    exceptions.ModelUnavailableError: "engine_unavailable",
    exceptions.ModelContextWindowExceededError: "context_length_exceeded",
    exceptions.ModelTimeoutError: "connect_timeout",  # of the transport's timeouts, a case sets that one only
    exceptions.ModelConnectionError: "connection_failed",
    exceptions.ModelAuthenticationError: "unauthorized",
    exceptions.ModelNotFoundError: "model_not_found",
    exceptions.ModelRequestRejectedError: "invalid_request_error",
    exceptions.ModelServerError: "internal_server_error",
    exceptions.ModelHTTPError: "invalid_request_error",
    exceptions.ModelAPIError: "internal_server_error",
    exceptions.UnexpectedModelBehavior: "malformed_response",
}
SAYS_MORE_THAN_STATUS_AND_CODE = ("quota_exceeded", "queue_overloaded", "context_length_exceeded")
TIMERS = {"first_event_timeout": "first_token_timeout", "request_timeout": "deadline_exceeded"}
NOTE = (
    "Its special classes (quota, overload, context) first, then the provider's code, else the status, else its class; a "
    "response whose state is not complete counts as incomplete."
)


@asynccontextmanager
async def opened(case: Call) -> AsyncIterator[Agent]:
    limits = case["call"]["timeouts"]
    names = {"first_token": "first_event_timeout", "total": "request_timeout"}
    given = {names[name]: seconds for name, seconds in limits.items() if name in names and seconds}
    settings = ModelSettings(max_retries=case["call"]["retries"], **given)
    async with create_async_httpx2_client(timeout=httpx2.Timeout(600, connect=limits.get("connect", 5))) as http:
        provider = OpenAICompatibleProvider(
            "scripted", base_url=case["base_url"], api_key=case["api_key"], http_client=http
        )
        yield Agent(OpenAIChatModel("m", provider=provider), model_settings=settings, retries=case["call"]["retries"])


async def read(agent: Agent, call: Call, heard: Heard) -> None:
    prompt = call["request"]["messages"][0]["content"]
    if not call["stream"]:
        result = await agent.run(prompt)
        heard.text = result.output
        last(result.response, heard)
        return
    async with agent.run_stream(prompt) as stream:
        heard.begun = True
        async for text in stream.stream_text(delta=True, debounce_by=None):
            heard.text += text
            heard.event_over()
        last(stream.response, heard)


def last(response: ModelResponse, heard: Heard) -> None:
    """What the response says of itself."""
    reason = (response.provider_details or {}).get("finish_reason", response.finish_reason)
    usage = response.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.total_tokens)
    heard.members["finish_reasons"] = {"0": reason}
    heard.members["usage"] = dict(zip(("prompt_tokens", "completion_tokens", "total_tokens"), counts, strict=True))
    if response.state != "complete":
        raise Incomplete(f"the response's state is {response.state}")


def failure(error: Exception) -> Result:
    if isinstance(error, exceptions.ContentFilterError):
        return {"outcome": "completed", "code": None}  # it only says how the answer finished
    if isinstance(error, exceptions.ModelRequestTimeout):
        return failed(TIMERS[error.setting], message=error.message)
    code, said = class_code(error, CODES), {"message": getattr(error, "message", str(error))}
    if type(error) is exceptions.ModelAPIError and isinstance(error.__cause__, ValueError):
        code = "malformed_response"  # the cause is what could not be decoded
    body = getattr(error, "body", None)
    no_model = code == "model_not_found" and isinstance(body, dict) and body.get("param") == "model"
    special = no_model or code in SAYS_MORE_THAN_STATUS_AND_CODE
    word = code if special else getattr(error, "provider_error_code", None)
    if isinstance(error, exceptions.ModelAPIError):
        said["retry_after_ms"] = None if error.retry_after is None else round(error.retry_after * 1000)
    return failed(code, code=word, status=getattr(error, "status_code", None), **said)


if __name__ == "__main__":
    serve(
        lambda case: asyncio.run(make(case, opened, read, failure)),
        name="pydantic-ai",
        version=importlib.metadata.version("pydantic-ai-slim"),
        capabilities=["cancel", "connect", "deadline", "first_token", "retry"],
        note=NOTE,
    )
