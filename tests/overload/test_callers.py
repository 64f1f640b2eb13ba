"""The experiment's callers behave as stock SDKs do, on a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from typing import Any

import httpx2
import openai
import pytest

from overload import stock_retry
from overload.callers import Attempt, Target, play
from overload.calls import Call

CHOICE: dict[str, Any] = {"index": 0, "finish_reason": "length"}
WHOLE = {"choices": [CHOICE], "usage": {"completion_tokens": 5}}
STREAM = b"".join(
    b"data: " + line + b"\n\n"
    for line in (
        b'{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}',
        b'{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}',
        b'{"choices":[],"usage":{"completion_tokens":5}}',
        b"[DONE]",
    )
)


def answer(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(body: bytes, size: int = 7) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


async def served(script: list[bytes | None], call: Call) -> tuple[list[Attempt], list[bytes]]:
    """Play one call to a server that answers its attempts in turn, None not at all; and the requests' heads."""
    heads: list[bytes] = []
    closed: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        said = script[len(heads) - 1]
        if said is not None:
            writer.write(said)
        closed.append(asyncio.ensure_future(until_closed(reader, writer)))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        attempts = await play([call], Target(server.sockets[0].getsockname()[1]))
        await asyncio.wait_for(asyncio.gather(*closed), 5)
    return attempts, heads


async def until_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        await reader.read()  # ends when the caller closes
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


def a_call(*, stream: bool = True, timeout: float = 5.0) -> Call:
    return Call(0, 0.0, stream=stream, prompt_tokens=20, answer_tokens=5, timeout=timeout, luck=1)


@pytest.mark.parametrize(
    ("stream", "said"), [(True, chunked(STREAM)), (False, answer(200, json.dumps(WHOLE).encode()))]
)
def test_a_whole_answer_is_completed_with_its_tokens(stream: bool, said: bytes) -> None:
    ((attempt,), _) = asyncio.run(served([said], a_call(stream=stream)))
    assert (attempt.ending, attempt.tokens, attempt.status, attempt.pause) == ("completed", 5, 200, None)
    assert (attempt.first_token is not None) == stream


def test_a_refusal_is_tried_again_after_the_hint_and_the_attempts_count() -> None:
    refusal = answer(503, b'{"error":{"code":"queue_overloaded"}}', "retry-after: 60", "retry-after-ms: 20")
    attempts, heads = asyncio.run(served([refusal, chunked(STREAM)], a_call()))
    assert [(one.ending, one.error, one.pause) for one in attempts] == [
        ("refused", "queue_overloaded", 0.02),
        ("completed", None, None),
    ]
    assert [b"x-stainless-retry-count: %d" % number in head for number, head in enumerate(heads)] == [True, True]


def test_who_must_not_retry_does_not() -> None:
    refusal = answer(503, b"{}", "x-should-retry: false")
    ((attempt,), _) = asyncio.run(served([refusal], a_call()))
    assert (attempt.ending, attempt.attempt, attempt.error) == ("refused", 1, "unreadable")


def test_a_caller_leaves_at_its_timeout_and_comes_back_twice() -> None:
    """The server sees each connection close, or the test would wait for it."""
    attempts, heads = asyncio.run(served([None, chunked(STREAM)[:90], None], a_call(timeout=0.1)))
    assert [(one.ending, one.pause is None) for one in attempts] == [("timed_out", False)] * 2 + [("timed_out", True)]
    assert len(heads) == 3
    assert all(0.09 < one.seconds < 1 for one in attempts)


@pytest.mark.parametrize(
    "said",
    [
        chunked(STREAM.replace(b"[DONE]", b'{"error":{"code":"x"}}')),
        chunked(STREAM.replace(b"data: [DONE]\n\n", b"")),
        answer(400, b"{}"),
    ],
)
def test_an_error_in_the_stream_a_cut_one_and_a_fault_of_the_callers_end_the_call(said: bytes) -> None:
    """As with stock SDKs, which retry nothing once a stream has begun."""
    ((attempt,), _) = asyncio.run(served([said], a_call()))
    assert attempt.ending == "failed"
    assert attempt.error is not None


HEADERS = [
    {},
    {"retry-after": "3"},
    {"retry-after": "3", "retry-after-ms": "1500"},
    {"retry-after": "0"},
    {"retry-after": "121"},
    {"retry-after": "soon"},
    {"x-should-retry": "true"},
    {"x-should-retry": "false", "retry-after": "3"},
    {"x-should-retry": "true", "retry-after": "500"},
]


@pytest.mark.parametrize("headers", HEADERS)
def test_the_rules_are_those_of_the_openai_package(headers: dict[str, str]) -> None:
    """Held against its own functions, which are private: nothing public tells them without waiting for them."""
    client: Any = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9")
    options = openai._models.FinalRequestOptions.construct(method="post", url="/x", max_retries=2)
    for status in (400, 408, 409, 429, 500, 503):
        response = httpx2.Response(status, headers=headers)
        assert stock_retry.tries_again(status, headers) == client._should_retry(response), status
    for attempt in (1, 2):
        stock = client._calculate_retry_timeout(3 - attempt, options, httpx2.Headers(headers))
        ours = stock_retry.pause(attempt, headers, random.Random(1))
        assert ours == pytest.approx(stock, rel=0.34)  # each has its own jitter of up to a quarter
