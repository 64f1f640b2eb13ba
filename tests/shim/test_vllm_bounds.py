"""vLLM's own bounds and its processes, read from a stand-in for its configuration; prompts of what it pools."""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from tests.shim.test_start import never, refuses_to_start

from lastword._classify import make_error
from lastword._codes import Code
from lastword_shim import Settings, Shim
from lastword_shim._start import start_line
from lastword_shim.engine import Ticket, enter

pytestmark = pytest.mark.anyio


def state_of(*, processes: int = 1, shutdown_timeout: int = 0, **scheduler: int | None) -> Any:
    config = types.SimpleNamespace(
        parallel_config=types.SimpleNamespace(_api_process_count=processes),
        scheduler_config=types.SimpleNamespace(
            **{"max_num_queued_reqs": None, "max_num_queued_tokens": None, **scheduler}
        ),
        shutdown_timeout=shutdown_timeout,
    )
    return types.SimpleNamespace(engine_client=types.SimpleNamespace(vllm_config=config, shutdown=lambda **_: None))


@pytest.mark.parametrize("name", ["max_inflight", "max_queued", "max_inflight_tokens", "max_queued_tokens"])
async def test_a_bound_that_each_of_several_processes_would_count_stops_the_start(vllm: Any, name: str) -> None:
    """With what to set; one process, or no bound, may start."""
    bound: dict[str, Any] = {name: 5}
    shim = Shim(never, settings=Settings(**bound), engine=vllm.VllmEngine(state_of(processes=4)))
    message = await refuses_to_start(shim)
    assert f"LASTWORD_{name.upper()} would hold for each of the 4 API server processes" in message
    for remedy in ("--api-server-count 1", "leave this unset", "lastword shim --upstream URL"):
        assert remedy in message
    assert vllm.VllmEngine(state_of(processes=4)).fault(Settings(total_timeout=5)) is None
    assert vllm.VllmEngine(state_of()).fault(Settings(**bound)) is None


@pytest.mark.parametrize(
    ("state", "settings", "told", "warns"),
    [
        (state_of(), {}, "", False),
        (
            state_of(max_num_queued_reqs=64, max_num_queued_tokens=9000),
            {"max_inflight": 64},
            (
                "vLLM itself refuses more than 64 unfinished requests (--max-num-queued-reqs) and "
                "requests beside 9000 prompt tokens in prefill (--max-num-queued-tokens)"
            ),
            False,
        ),
        (
            state_of(max_num_queued_reqs=8),
            {"max_inflight": 9},
            "LASTWORD_MAX_INFLIGHT=9 is more than vLLM takes",
            True,
        ),
        (state_of(processes=2), {}, "2 API server processes and --shutdown-timeout 0", True),
        (state_of(processes=2, shutdown_timeout=30), {}, "", False),
    ],
)
async def test_the_start_line_tells_what_vllm_bounds_itself(
    vllm: Any, state: Any, settings: dict[str, Any], told: str, warns: bool
) -> None:
    """A warning only where something does not go well together."""
    level, line = start_line(Settings(**settings), vllm.VllmEngine(state))
    assert told in line
    assert level == (logging.WARNING if warns else logging.INFO)
    if not told:
        assert "vLLM" not in line.replace("engine: vLLM", "")


@pytest.mark.parametrize(
    ("words", "details"),
    [
        ("The engine is currently busy and cannot accept new requests.", {"max_num_queued_reqs": 8}),
        ("The engine has reached its prefill token backlog limit.", {"max_num_queued_tokens": 100}),
    ],
)
async def test_its_refusal_tells_the_bound_and_none_of_its_words(
    vllm: Any, words: str, details: dict[str, int]
) -> None:
    """The registry's sentence; other errors stay as they are."""
    engine = vllm.VllmEngine(state_of(max_num_queued_reqs=8, max_num_queued_tokens=100))
    error = engine.restate(make_error(Code.QUEUE_OVERLOADED, words, origin="engine", raw=words), Ticket("x"))
    assert (error.code, error.details, error.raw) == ("queue_overloaded", details, None)
    assert "engine" not in error.message
    other = make_error(Code.MODEL_NOT_FOUND, words)
    assert engine.restate(other, Ticket("x")) is other


async def test_with_several_processes_last_words_are_said_before_vllm_kills(vllm: Any) -> None:
    """It kills after its shutdown timeout what has not ended, so that open requests get two seconds less."""
    given: list[float] = []

    class Host:
        async def drain(self, timeout: float) -> None:
            given.append(timeout)

    for processes, timeout in ((1, 5), (2, 5), (2, 1)):
        state = state_of(processes=processes)
        vllm.VllmEngine(state).attach(Host())
        shutdown = state.engine_client.shutdown
        await asyncio.get_running_loop().run_in_executor(None, partial(shutdown, timeout=timeout))
    assert given == [5, 3, 0]


async def test_the_prompts_of_what_is_pooled_are_counted_too(vllm: Any) -> None:
    """Each of a request's, before any has begun; where there is no room the request is refused as vLLM refuses."""
    asked: list[Any] = []

    async def outputs() -> AsyncIterator[int]:
        yield 1

    def encode(prompt: Any, *, request_id: str) -> AsyncIterator[int]:
        asked.append(request_id)
        return outputs()

    state = state_of()
    state.engine_client.encode = encode
    vllm.VllmEngine(state).attach(None)
    client = state.engine_client
    assert [each async for each in client.encode({"prompt_token_ids": [1, 2]}, request_id="nobody's")] == [1]
    ticket = Ticket("x")
    enter(ticket)
    no_room = make_error(Code.QUEUE_OVERLOADED, "full", origin="shim")
    ticket.room = lambda tokens: no_room if tokens > 5 else None
    assert [each async for each in client.encode({"prompt_token_ids": [1, 2, 3]}, request_id="a")] == [1]
    with pytest.raises(Exception, match="full") as caught:
        client.encode({"prompt_token_ids": [1, 2, 3]}, request_id="b")
    assert type(caught.value).__name__ == "VLLMValidationError"
    assert (ticket.prompt_tokens, ticket.refusal) == (6, no_room)
