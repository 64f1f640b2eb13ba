"""The callers: each plays one call of the trace with stock SDKs' manners, over HTTP of its own, so that it costs little.

An attempt has a connection of its own.  It ends when the whole answer has come, when the server refuses or fails, or when
the caller's timeout has passed: then the socket closes, which is how a server learns of it.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from overload import stock_retry
from overload.calls import Call

PATH = "/v1/chat/completions"
LINE = 1024 * 1024
_TEXT = re.compile(rb'"content": ?"[^"]')
_ENDS = re.compile(rb'"finish_reason": ?"|"usage": ?\{|"error"')


@dataclass(slots=True)
class Attempt:
    """What one attempt met.  Times are seconds; ``at`` counts from the trace's start.

    ``ending``: ``completed`` (the whole answer, in time), ``refused`` (429 or 503), ``timed_out``, ``failed`` (all else).
    """

    call: int
    attempt: int
    at: float
    stream: bool
    timeout: float
    ending: str = "failed"
    status: int | None = None
    seconds: float = 0.0
    first_token: float | None = None
    tokens: int = 0
    pause: float | None = None
    error: str | None = None


@dataclass(slots=True)
class Target:
    """Where the calls go."""

    port: int
    tell_deadline: bool = False
    """Whether attempts say their timeout in ``request-timeout-ms``; stock SDKs do not."""
    headers: str = ""
    """Further lines of the head."""


async def play(calls: Iterable[Call], target: Target, on_end: Callable[[Attempt], None] | None = None) -> list[Attempt]:
    """Start each call at its time, whatever has become of the earlier ones (open loop), and wait for the last."""
    attempts: list[Attempt] = []
    began = time.monotonic()

    def note(attempt: Attempt) -> None:
        attempts.append(attempt)
        if on_end is not None:
            on_end(attempt)

    async with asyncio.TaskGroup() as group:
        for call in calls:
            await asyncio.sleep(began + call.at - time.monotonic())
            group.create_task(_call(call, target, began, note))
    return attempts


async def _call(call: Call, target: Target, began: float, note: Callable[[Attempt], None]) -> None:
    chance = random.Random(call.luck)
    for number in range(1, stock_retry.RETRIES + 2):
        attempt, headers = await try_once(call, target, number, began)
        answered = attempt.status is not None and attempt.ending != "timed_out"
        again = stock_retry.tries_again(attempt.status or 0, headers) if answered else True
        if attempt.ending == "completed" or not again or number > stock_retry.RETRIES:
            note(attempt)
            return
        attempt.pause = round(stock_retry.pause(number, headers, chance), 4)
        note(attempt)
        await asyncio.sleep(attempt.pause)


async def try_once(call: Call, target: Target, number: int, began: float) -> tuple[Attempt, Mapping[str, str]]:
    """One attempt, and the headers of an error answer."""
    started = time.monotonic()
    attempt = Attempt(call.number, number, round(started - began, 4), call.stream, call.timeout)
    headers: Mapping[str, str] = {}
    try:
        async with asyncio.timeout(call.timeout), _ask(call, target, number) as (status, said, body):
            attempt.status = status
            if status != 200:
                attempt.ending = "refused" if status in (429, 503) else "failed"
                headers, attempt.error = said, _code(b"".join([part async for part in body]))
            elif call.stream:
                await _read_stream(body, attempt, started)
            else:
                fine = _take(json.loads(b"".join([part async for part in body])), attempt)
                attempt.ending = "completed" if fine else "failed"
    except TimeoutError:
        attempt.ending = "timed_out"
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        attempt.ending, attempt.error = "failed", type(error).__name__
    attempt.seconds = round(time.monotonic() - started, 4)
    return attempt, headers


async def _read_stream(parts: AsyncIterator[bytes], attempt: Attempt, started: float) -> None:
    """Read events until ``[DONE]``; an error among them is the end, as it is for stock SDKs, which do not retry then."""
    held = b""
    async for part in parts:
        held += part
        *lines, held = held.split(b"\n")
        for line in lines:
            if line == b"data: [DONE]":
                attempt.ending = "completed" if attempt.tokens else "failed"
                return
            if attempt.first_token is None and _TEXT.search(line):
                attempt.first_token = round(time.monotonic() - started, 4)
            if _ENDS.search(line) and not _take(json.loads(line.removeprefix(b"data: ")), attempt):
                return
    attempt.error = "no [DONE]"


def _take(said: dict[str, Any], attempt: Attempt) -> bool:
    """Take note of what a chunk or a whole answer says of its end; whether that is fine so far."""
    reasons = [choice.get("finish_reason") for choice in said.get("choices", ())]
    if said.get("error"):
        attempt.error = _code(json.dumps(said).encode())
    elif not all(reason in (None, "stop", "length") for reason in reasons):
        attempt.error = f"finish_reason {reasons}"
    elif said.get("usage"):
        attempt.tokens = said["usage"]["completion_tokens"]
    return attempt.error is None


def _code(body: bytes) -> str:
    try:
        error = json.loads(body)["error"]
        return str(error.get("code") or error.get("type"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return "unreadable"


Answer = tuple[int, Mapping[str, str], AsyncIterator[bytes]]


@asynccontextmanager
async def _ask(call: Call, target: Target, number: int) -> AsyncIterator[Answer]:
    content = "".join(random.Random(call.luck).choices("abcdefghijklmnopqrstuvwxyz ", k=call.prompt_tokens))
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": content}], "stream": call.stream}
    asked |= {"max_tokens": call.answer_tokens, "ignore_eos": True}
    asked |= {"stream_options": {"include_usage": True}} if call.stream else {}
    data = json.dumps(asked).encode()
    head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nconnection: close\r\n"
    head += (
        f"content-length: {len(data)}\r\nx-request-id: call-{call.number}\r\nx-stainless-retry-count: {number - 1}\r\n"
    )
    head += f"x-stainless-read-timeout: {call.timeout:g}\r\n"  # as openai-python sends it
    head += f"request-timeout-ms: {call.timeout * 1000:.0f}\r\n" if target.tell_deadline else ""
    head += target.headers
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=LINE)
    try:
        writer.write(head.encode() + b"\r\n" + data)
        status = int((await reader.readuntil(b"\r\n")).split()[1])
        headers = {}
        while line := (await reader.readuntil(b"\r\n")).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        async with aclosing(_body(reader, headers)) as body:
            yield status, headers, body
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
    if headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            yield (await reader.readexactly(size + 2))[:-2]
    else:
        yield await reader.readexactly(int(headers["content-length"]))
