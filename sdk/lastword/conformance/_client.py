"""Plays client vectors: a scripted server on a real socket, one lastword client, and what the call came to.

The result is held against the vector's ``expect``; requests, connections and gaps are the server's own counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from lastword import AsyncClient, Client, LastwordError, Outcome, RetryPolicy, Timeouts
from lastword._errors import outcome_of
from lastword.conformance._result import Result, call_of, compare, compare_traffic, result_of
from lastword.conformance._schemas import violations
from lastword.testing import ScriptedServer

Mode = Literal["sync", "async"]

_LONG: Final = Timeouts(connect=10, first_token=30, idle=30, total=50)
_NO_CERTIFICATES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the vectors speak plain HTTP; loading costs 50 ms
_CANCELLED: Final = Outcome(
    outcome="cancelled", code="cancelled", category="cancelled", message="the task was cancelled"
)


@dataclass(frozen=True, slots=True)
class Played:
    """What one call came to, and how long it took in seconds."""

    result: Result
    error: LastwordError | None
    seconds: float


def play_client(vector: Mapping[str, Any], segmentation: str, mode: Mode) -> list[str]:
    """Give what the client did otherwise than the vector wants; nothing if all is well."""
    expect = vector["expect"]
    with _address(vector, segmentation) as (base_url, server):
        play = _sync if mode == "sync" else lambda v, url: asyncio.run(_async(v, url))
        played = play(vector, base_url)
    problems = compare(expect, played.result)
    if server is not None:
        problems += compare_traffic(expect, server)
    if played.seconds * 1000 > expect.get("within_ms", float("inf")):
        problems.append(f"the call took {played.seconds * 1000:.0f} ms, not {expect['within_ms']} at most")
    if played.error is not None:
        problems += violations("error", played.error.body)
    return problems


@contextlib.contextmanager
def _address(vector: Mapping[str, Any], segmentation: str) -> Iterator[tuple[str, ScriptedServer | None]]:
    listening = vector.get("listening", "yes")
    if listening != "no":
        accepting: Literal["yes", "no"] = "no" if listening == "full" else "yes"
        with ScriptedServer(vector["server"], segmentation=segmentation, accepting=accepting, strict=False) as server:
            yield server.base_url, server
        return
    with socket.socket() as taken:  # bound but not listening: nobody else can get the port, and connecting is refused
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1", None


def _options(vector: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    call = vector["call"]
    given = {name: getattr(_LONG, name) for name in ("connect", "first_token", "idle", "total")}
    return {
        "base_url": base_url,
        "api_key": "key-of-the-vectors",
        "timeouts": Timeouts(**{**given, **call.get("timeouts", {})}),
        "retry": RetryPolicy(max_attempts=call.get("retries", 0) + 1, base_delay=0.05, max_delay=0.2),
        "profile": call.get("profile"),
        "ssl_context": _NO_CERTIFICATES,
    }


def _request(client: Any, call: Mapping[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Give the method of ``client`` that makes this call, and its arguments."""
    if call.get("endpoint") == "models":
        return client.models.list, {}
    arguments: dict[str, Any] = {"model": "m", "stream": call["stream"] or None}
    if call.get("endpoint") == "completions":
        return client.completions.create, {**arguments, "prompt": "hi", **call.get("body", {})}
    messages = [{"role": "user", "content": "hi"}]
    return client.chat.completions.create, {**arguments, "messages": messages, **call.get("body", {})}


def _sync(vector: Mapping[str, Any], base_url: str) -> Played:
    call = vector["call"]
    cancel = call.get("cancel", {})
    with Client(**_options(vector, base_url)) as client:
        for _ in range(call.get("repeat", 1)):
            started = time.monotonic()
            timer = threading.Timer(cancel.get("after_ms", 0) / 1000, client.close)
            if "after_ms" in cancel:
                timer.start()
            if call["stream"]:
                result, error = _read_stream(client, call)
            else:
                create, arguments = _request(client.with_outcome, call)
                result, error = _whole(*create(**arguments))
            timer.cancel()
            played = Played(result, error, time.monotonic() - started)
    return played


def _read_stream(client: Client, call: Mapping[str, Any]) -> tuple[Result, LastwordError | None]:
    create, arguments = _request(client, call)
    try:
        stream = create(**arguments)
    except LastwordError as error:
        return _refused(error), error
    reading = _Reading(stream, call)
    try:
        for chunk in stream:
            if reading.last(chunk):
                stream.close()
                break
    except LastwordError as error:
        return reading.result(error), error
    return reading.result(None), None


async def _async(vector: Mapping[str, Any], base_url: str) -> Played:
    call = vector["call"]
    cancel = call.get("cancel", {})
    async with AsyncClient(**_options(vector, base_url)) as client:
        for _ in range(call.get("repeat", 1)):
            started = time.monotonic()
            readings: list[_Reading] = []
            task = asyncio.ensure_future(_call_async(client, call, readings))
            if "after_ms" in cancel:
                asyncio.get_running_loop().call_later(cancel["after_ms"] / 1000, task.cancel)
            try:
                result, error = await task
            except asyncio.CancelledError:  # the caller's own cancellation reaches the caller, as it must
                result, error = (readings[0].result(None) if readings else _refused(None)), None
            played = Played(result, error, time.monotonic() - started)
    return played


async def _call_async(
    client: AsyncClient, call: Mapping[str, Any], readings: list[_Reading]
) -> tuple[Result, LastwordError | None]:
    if not call["stream"]:
        create, arguments = _request(client.with_outcome, call)
        return _whole(*await create(**arguments))
    create, arguments = _request(client, call)
    try:
        stream = await create(**arguments)
    except LastwordError as error:
        return _refused(error), error
    reading = _Reading(stream, call)
    readings.append(reading)
    try:
        async for chunk in stream:
            if reading.last(chunk):
                await stream.aclose()
                break
    except LastwordError as error:
        return reading.result(error), error
    return reading.result(None), None


class _Reading:
    """What the chunks of a stream said, put together without the stream's own help."""

    def __init__(self, stream: Any, call: Mapping[str, Any]) -> None:
        self._stream = stream
        self._limit = call.get("cancel", {}).get("after_events")
        self._chunks = 0
        self._texts: dict[int, str] = {}

    def last(self, chunk: Any) -> bool:
        """Take a chunk; true if the caller leaves after it."""
        self._chunks += 1
        for choice in chunk.choices:
            text = choice.delta.content if hasattr(choice, "delta") else choice.text
            self._texts[choice.index] = self._texts.get(choice.index, "") + (text or "")
        return bool(self._chunks == self._limit)

    def result(self, error: LastwordError | None) -> Result:
        stream, outcome = self._stream, self._stream.outcome
        assert stream.text == self._texts.get(0, ""), "the stream's text is not what its chunks said"
        if error is not None:
            assert outcome.error is error
            assert {**dict.fromkeys(self._texts, ""), **error.partial.texts} == self._texts, "partial is not what came"
        return result_of(
            outcome, texts=self._texts, tool_calls=[call_of(call) for call in stream.tool_calls], error=error
        )


def _refused(error: LastwordError | None) -> Result:
    """A stream that was never opened."""
    outcome = _CANCELLED if error is None else outcome_of(error)
    return result_of(outcome, texts=error.partial.texts if error else {}, tool_calls=(), error=error)


def _whole(value: Any, outcome: Outcome) -> tuple[Result, LastwordError | None]:
    error = outcome.error if isinstance(outcome.error, LastwordError) else None
    texts: dict[int, str] = dict(error.partial.texts) if error else {}
    calls: list[dict[str, object]] = []
    for choice in getattr(value, "choices", None) or ():
        message = getattr(choice, "message", None)
        texts[choice.index] = (choice.text if message is None else message.content) or ""
        calls += [
            {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
            for call in getattr(message, "tool_calls", None) or ()
        ]
    return result_of(outcome, texts=texts, tool_calls=calls, error=error), error
