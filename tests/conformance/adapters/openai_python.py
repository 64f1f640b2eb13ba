"""openai-python's async client: ``--mode iterator`` loops over ``stream=True``, ``--mode stream`` is its ``.stream()``."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import suppress
from typing import Any

import openai
from caller import Call, Heard, Result, make
from codes import class_code, failed
from openai_shapes import Choices
from protocol import serve

CODES = {  # the most special class first; a code or a status that the error carries goes before
    openai.APITimeoutError: "connect_timeout",  # connect is the only limit that a case sets for it
    openai.APIConnectionError: "connection_failed",
    openai.APIResponseValidationError: "malformed_response",
    openai.APIStatusError: "invalid_request_error",
    openai.APIError: "internal_server_error",  # an error event within a stream
}
CAPABILITIES = {
    "iterator": ["cancel", "choices", "completions", "connect", "models", "retry", "tools"],
    "stream": ["cancel", "choices", "connect", "retry", "tools"],
}
NOTE = "AsyncOpenAI; codes are the error's code, else its HTTP status, else its class. Its timeout is per read, so no timer."


def opened(case: Call) -> openai.AsyncOpenAI:
    call = case["call"]
    connect = call["timeouts"].get("connect", openai.DEFAULT_TIMEOUT.connect)
    timeout = openai.Timeout(openai.DEFAULT_TIMEOUT.read, connect=connect)
    options: dict[str, Any] = {"max_retries": call["retries"], "timeout": timeout}
    return openai.AsyncOpenAI(base_url=case["base_url"], api_key=case["api_key"], **options)


async def iterator(client: openai.AsyncOpenAI, call: Call, heard: Heard) -> None:
    if call["endpoint"] == "models":
        await client.models.list()
        return
    choices = Choices(heard)
    resource: Any = client.completions if call["endpoint"] == "completions" else client.chat.completions
    answer = await resource.create(**call["request"])
    if not call["stream"]:
        choices.answer(answer)
        return
    heard.begun = True
    async with answer:
        async for chunk in answer:
            choices.chunk(chunk)


async def stream(client: openai.AsyncOpenAI, call: Call, heard: Heard) -> None:
    if not call["stream"]:
        await iterator(client, call, heard)  # there is no other way
        return
    choices = Choices(heard)
    request = {name: value for name, value in call["request"].items() if name != "stream"}
    async with client.chat.completions.stream(**request) as events:
        heard.begun = True
        async for event in events:
            if event.type == "chunk":
                choices.chunk(event.chunk)
        with suppress(openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError):  # no failures: they only
            await events.get_final_completion()  # say how the answer finished


def failure(error: Exception) -> Result:
    said = {name: getattr(error, name) for name in ("message", "code", "param", "request_id") if hasattr(error, name)}
    return failed(
        class_code(error, CODES), status=getattr(error, "status_code", None), **{"message": str(error), **said}
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=("iterator", "stream"), default="iterator")
    mode = parser.parse_args().mode
    read = {"iterator": iterator, "stream": stream}[mode]
    serve(
        lambda case: asyncio.run(make(case, opened, read, failure)),
        name="openai-python" if mode == "iterator" else "openai-python-stream",
        version=openai.__version__,
        capabilities=CAPABILITIES[mode],
        note=NOTE,
    )
