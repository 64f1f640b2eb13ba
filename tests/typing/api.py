"""The public API as a type checker sees it. Only type-checked (mypy strict, in `scripts/check`), never run.

A change here that a user would have to follow is a breaking change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_type

from openai.types import Completion, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from lastword import (
    AsyncClient,
    AsyncStream,
    Attempt,
    Client,
    ContextLengthExceeded,
    LastwordError,
    Outcome,
    Partial,
    RequestError,
    RequestTimeout,
    RetryPolicy,
    Stream,
    Timeouts,
    ToolCall,
)

MESSAGES = [{"role": "user", "content": "hi"}]


def configured() -> Client:
    timeouts = Timeouts(connect=5, first_token=30, idle=15, total=None)
    retry = RetryPolicy(max_attempts=3)
    return Client(base_url="http://127.0.0.1:8000/v1", api_key="k", timeouts=timeouts, retry=retry)


def whole_answers(client: Client) -> None:
    assert_type(client.chat.completions.create(model="m", messages=MESSAGES, max_tokens=64), ChatCompletion)
    assert_type(client.completions.create(model="m", prompt="hi", stream=False), Completion)
    for model in client.models.list():
        assert_type(model, Model)


def streams(client: Client) -> None:
    with client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream:
        assert_type(stream, Stream[ChatCompletionChunk])
        assert_type(next(stream), ChatCompletionChunk)
        for chunk in stream:
            assert_type(chunk, ChatCompletionChunk)
    assert_type(stream.outcome, Outcome | None)
    assert_type(stream.text, str)
    assert_type(stream.request_id, str)
    for call in stream.tool_calls:
        assert_type(call, ToolCall)
        assert_type(call.arguments, Any)
    assert_type(client.completions.create(model="m", prompt="hi", stream=True), Stream[Completion])


def a_stream_or_not(client: Client, stream: bool) -> None:
    answer = client.chat.completions.create(model="m", messages=MESSAGES, stream=stream)
    assert_type(answer, ChatCompletion | Stream[ChatCompletionChunk])


def without_raising(client: Client) -> None:
    answer, outcome = client.with_outcome.chat.completions.create(model="m", messages=MESSAGES)
    assert_type(answer, ChatCompletion | None)
    assert_type(outcome, Outcome)
    assert_type(outcome.code, str | None)
    assert_type(outcome.completed, bool)


async def the_same_with_await(client: AsyncClient) -> None:
    assert_type(await client.chat.completions.create(model="m", messages=MESSAGES), ChatCompletion)
    async with await client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream:
        assert_type(stream, AsyncStream[ChatCompletionChunk])
        async for chunk in stream:
            assert_type(chunk, ChatCompletionChunk)
    await client.aclose()


def errors(client: Client) -> str:
    try:
        client.chat.completions.create(model="m", messages=MESSAGES)
    except ContextLengthExceeded as error:
        assert_type(error.details, Mapping[str, Any])
    except RequestTimeout as error:
        return str(error.timer)
    except RequestError as error:
        return error.action
    except LastwordError as error:
        assert_type(error.code, str)
        assert_type(error.retryable, bool)
        assert_type(error.retry_after, float | None)
        assert_type(error.partial, Partial)
        assert_type(error.attempts, list[Attempt])
        return error.message
    return ""
