"""Four timers, and what does not reset them (TMR rules)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.sdk.wire import DONE, MESSAGES, STALL, chunk, client_for, takes

from lastword import AsyncClient, LastwordError, RequestTimeout, RetryPolicy, Timeouts
from lastword.testing import ScriptedServer
from lastword.testing import stream as script

ROLE = chunk({"role": "assistant", "content": ""})


def fails(server: ScriptedServer, timeouts: Timeouts, mode: str, *, stream: bool = True) -> LastwordError:
    """The error of one call, by either client."""
    with pytest.raises(LastwordError) as caught:
        if mode == "sync":
            with client_for(server, timeouts=timeouts) as client:
                answer: Any = client.chat.completions.create(model="m", messages=MESSAGES, stream=stream)
                list(answer)
        else:
            asyncio.run(_async_call(server, timeouts, stream))
    return caught.value


async def _async_call(server: ScriptedServer, timeouts: Timeouts, stream: bool) -> None:
    retry = RetryPolicy(max_attempts=1)
    async with AsyncClient(base_url=server.base_url, timeouts=timeouts, retry=retry) as client:
        answer: Any = await client.chat.completions.create(model="m", messages=MESSAGES, stream=stream)
        async for _ in answer:
            pass


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    """Each test with both clients."""
    return str(request.param)


def test_connect(mode: str) -> None:
    """A server that does not answer the connection."""
    with ScriptedServer(accepting="no") as server, takes(0.3, 6):
        error = fails(server, Timeouts(connect=0.4), mode)
    assert isinstance(error, RequestTimeout)
    assert (error.code, error.timer, error.origin) == ("connect_timeout", "connect", "client")


KEEP_WARM: dict[str, list[dict[str, Any]]] = {
    "silence": [],
    "comments": [{"text": ": keep-alive\n\n"}],
    "roles": [ROLE],
    "empty-deltas": [chunk({"content": ""}), chunk({})],
    "usage": [{"data": {"choices": [], "usage": {"completion_tokens": 1}}}],
    "empty-data": [{"text": "data:\n\n"}],
}


def warm(name: str) -> list[dict[str, Any]]:
    """Twelve seconds of something that is no content, every 100 ms."""
    return [step for _ in range(120) for step in (*KEEP_WARM[name], {"delay_ms": 100})]


@pytest.mark.parametrize("name", KEEP_WARM)
def test_first_token_is_about_content(mode: str, name: str) -> None:
    """What is no content does not count as the first token, however busy the stream looks."""
    with ScriptedServer([{"status": 200, "steps": warm(name)}], strict=False) as server, takes(0.5, 6):
        error = fails(server, Timeouts(first_token=0.6, idle=0.3), mode)
    assert isinstance(error, RequestTimeout)
    assert (error.code, error.timer) == ("first_token_timeout", "first_token")


@pytest.mark.parametrize("name", KEEP_WARM)
def test_idle_is_about_content(mode: str, name: str) -> None:
    """What is no content does not reset the idle timer; what came before is kept."""
    steps = [ROLE, chunk({"content": "Hel"}), *warm(name)]
    with ScriptedServer([{"status": 200, "steps": steps}], strict=False) as server, takes(0.4, 6):
        error = fails(server, Timeouts(first_token=5, idle=0.5), mode)
    assert isinstance(error, RequestTimeout)
    assert (error.code, error.timer) == ("generation_stalled", "idle")
    assert error.partial.text == "Hel"


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x"},
        {"reasoning_content": "x"},
        {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": "{}"}}]},
        {"a_field_of_next_year": "x"},
    ],
)
def test_any_content_resets_the_idle_timer(mode: str, delta: dict[str, Any]) -> None:
    """Reasoning, tool calls and fields nobody knows yet are progress."""
    steps = [step for _ in range(6) for step in (chunk(delta), {"delay_ms": 150})]
    with ScriptedServer([{"status": 200, "steps": [*steps, *DONE]}]) as server:
        if mode == "sync":
            with client_for(server, timeouts=Timeouts(first_token=5, idle=0.6)) as client:
                list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))
        else:
            asyncio.run(_async_call(server, Timeouts(first_token=5, idle=0.6), True))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_total_before_the_headers(mode: str, stream: bool) -> None:
    """A server that accepts and never answers."""
    silent = {"before": [{"delay_ms": 12_000}], "status": 200, "steps": []}
    with ScriptedServer([silent], strict=False) as server, takes(0.4, 6):
        error = fails(server, Timeouts(total=0.5), mode, stream=stream)
    assert (error.code, getattr(error, "timer", None)) == ("deadline_exceeded", "total")


def test_total_while_content_flows(mode: str) -> None:
    """An answer that never ends."""
    steps = [step for _ in range(240) for step in (chunk({"content": "x"}), {"delay_ms": 50})]
    with ScriptedServer([{"status": 200, "steps": steps}], strict=False) as server, takes(0.4, 6):
        error = fails(server, Timeouts(total=0.5), mode)
    assert error.code == "deadline_exceeded"
    assert error.partial.text.startswith("xxx")


def test_a_whole_answer_that_stalls_in_the_body(mode: str) -> None:
    """Headers and half a body are no answer; only connect and total run."""
    half = {"status": 200, "framing": "content-length", "steps": [{"text": '{"choices": ['}, STALL]}
    with ScriptedServer([half]) as server, takes(0.4, 6):
        error = fails(server, Timeouts(total=0.5, first_token=0.1, idle=0.1), mode, stream=False)
    assert error.code == "deadline_exceeded"


def test_a_refusal_that_stalls_in_its_body(mode: str) -> None:
    """The status is known at once; nobody waits for the deadline to hear more of it."""
    half = {"status": 400, "framing": "content-length", "steps": [{"text": '{"error": {"mess'}, STALL]}
    with ScriptedServer([half]) as server, takes(2.5, 10):
        error = fails(server, Timeouts(total=30), mode, stream=False)
    assert (error.code, error.status) == ("invalid_request_error", 400)


def test_a_slow_reader_is_not_a_slow_server() -> None:
    """The time that the caller spends between two chunks counts for no timer but total."""
    with ScriptedServer([script("a", "b", "c")]) as server:
        with client_for(server, timeouts=Timeouts(first_token=0.3, idle=0.3)) as client:
            for _ in client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
                time.sleep(0.4)


def test_total_is_over_all_attempts() -> None:
    """Three attempts share one deadline (openai-python's issue 3828 waits three times as long)."""
    silent = {"before": [{"delay_ms": 12_000}], "status": 200, "steps": []}
    busy = {"status": 503, "steps": [{"json": {"error": {"message": "busy", "code": "queue_overloaded"}}}]}
    with ScriptedServer([busy, silent], strict=False) as server, takes(0.4, 6):
        with client_for(server, attempts=5, timeouts=Timeouts(total=0.6)) as client:
            with pytest.raises(RequestTimeout) as caught:
                client.chat.completions.create(model="m", messages=MESSAGES)
    assert [attempt.code for attempt in caught.value.attempts] == ["queue_overloaded", "deadline_exceeded"]
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", ["connect", "first_token", "idle", "total"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "5", True])
def test_a_bad_timeout_is_refused_by_name(name: str, value: Any) -> None:
    """The message names the timer and the remedy."""
    with pytest.raises(ValueError, match=rf"Timeouts\({name}=.*None to switch it off"):
        Timeouts(**{name: value})


def test_a_request_can_bring_its_own_timeouts() -> None:
    """``timeout`` in seconds is the total; None is the client's own and not "for ever"."""
    silent = {"before": [{"delay_ms": 12_000}], "status": 200, "steps": []}
    with (
        ScriptedServer([silent, silent], strict=False) as server,
        client_for(server, timeouts=Timeouts(total=0.5)) as client,
    ):
        for timeout in (0.3, None):
            with takes(0.2, 6), pytest.raises(RequestTimeout):
                client.chat.completions.create(model="m", messages=MESSAGES, timeout=timeout)
