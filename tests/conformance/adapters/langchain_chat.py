"""langchain-openai: ``ChatOpenAI.astream`` for streams, ``ainvoke`` for the rest."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

os.environ["LANGSMITH_TRACING"] = "false"  # no telemetry; read when langchain is imported

import openai
from caller import Call, Heard, Result, make
from codes import class_code, failed
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from protocol import serve

CODES = {  # the most special class first; most of its errors are also openai's classes, with their code and status
    ContextOverflowError: "context_length_exceeded",
    TimeoutError: "generation_stalled",  # its StreamChunkTimeoutError; openai's own is another class
    openai.APITimeoutError: "connect_timeout",  # connect is the only limit of the transport that a case sets
    openai.APIConnectionError: "connection_failed",
    openai.APIStatusError: "invalid_request_error",
    openai.APIError: "internal_server_error",  # an error event within a stream
}
NOTE = "Context overflow by its class, else the error's code, HTTP status or class; stream_chunk_timeout is its idle timer."


@asynccontextmanager
async def opened(case: Call) -> AsyncIterator[ChatOpenAI]:
    limits: dict[str, Any] = case["call"]["timeouts"]
    options: dict[str, Any] = {"stream_chunk_timeout": limits["idle"]} if "idle" in limits else {}
    if "connect" in limits:
        options["timeout"] = openai.Timeout(openai.DEFAULT_TIMEOUT.read, connect=limits["connect"])
    retries = case["call"]["retries"]
    yield ChatOpenAI(model="m", base_url=case["base_url"], api_key=case["api_key"], max_retries=retries, **options)


async def read(model: ChatOpenAI, call: Call, heard: Heard) -> None:
    messages = call["request"]["messages"]
    heard.members["tool_calls"] = []
    if call["stream"]:
        whole: Any = None
        async for chunk in model.astream(messages):
            whole = chunk if whole is None else whole + chunk
            heard.begun, heard.text = True, whole.text
            heard.event_over()
        texts = {part["id"]: part["args"] for part in whole.tool_call_chunks}
    else:
        whole, texts = await model.ainvoke(messages), {}
        heard.text = whole.text
    last(whole, texts, heard)


def last(message: AIMessage, texts: dict[str, str], heard: Heard) -> None:
    """What the whole message has beside its text."""
    heard.members["finish_reasons"] = {"0": message.response_metadata.get("finish_reason")}
    heard.members["tool_calls"] = [
        {"id": each["id"], "name": each["name"], "arguments": texts.get(each["id"], json.dumps(each["args"]))}
        for each in message.tool_calls
    ]
    if message.usage_metadata:
        counts = ("input_tokens", "output_tokens", "total_tokens")
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        heard.members["usage"] = {
            name: message.usage_metadata[count] for name, count in zip(names, counts, strict=True)
        }


def failure(error: Exception) -> Result:
    code = class_code(error, CODES)
    said = {name: getattr(error, name) for name in ("message", "param", "request_id") if hasattr(error, name)}
    word = code if code == "context_length_exceeded" else getattr(error, "code", None)
    status = getattr(error, "status_code", None)
    return failed(code, code=word, status=status, **{"message": str(error), **said})


if __name__ == "__main__":
    serve(
        lambda case: asyncio.run(make(case, opened, read, failure)),
        name="langchain-openai",
        version=importlib.metadata.version("langchain-openai"),
        capabilities=["cancel", "connect", "idle", "retry", "tools"],
        note=NOTE,
    )
