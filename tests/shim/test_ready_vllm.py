"""What vLLM's engine was told to do: its states, from the moment that somebody calls for one."""

from __future__ import annotations

import asyncio
import logging
import sys
import types
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from prometheus_client import REGISTRY, Gauge
from tests.shim.test_start import Params

from lastword_shim.engine import Ticket, enter

pytestmark = pytest.mark.anyio


class Client:
    """As much of vLLM's AsyncLLM as has to do with it; ``calls`` are what its engine was told."""

    def __init__(self) -> None:
        self.engine: Any = None
        self.errored = False
        self.calls: list[Any] = []
        self.fails: Exception | None = None
        self.step = asyncio.Event()
        self.step.set()
        self.sleeping: set[str] = set()

    async def _tell(self, *call: object) -> None:
        await self.step.wait()
        if self.fails is not None:
            raise self.fails
        self.calls.append(call)

    async def sleep(self, level: int = 1, mode: str = "abort") -> None:
        await self._tell("sleep", level, mode)
        self.sleeping = {"weights", "kv_cache"} if level else set()

    async def wake_up(self, tags: list[str] | None = None) -> bool:
        await self._tell("wake_up", tags)
        self.sleeping -= self.sleeping if tags is None else set(tags)
        return not self.sleeping

    async def pause_generation(self, *, mode: str = "abort", clear_cache: bool = True) -> None:
        await self._tell("pause", mode, clear_cache)

    async def resume_generation(self) -> None:
        await self._tell("resume")

    async def release_kv_cache_memory(self) -> None:
        await self._tell("release")

    async def generate(self, *_: object, **_options: object) -> AsyncIterator[Any]:
        self.calls.append(("generate",))
        yield types.SimpleNamespace(outputs=[types.SimpleNamespace(index=0, token_ids=[1])], metrics=None)


def watched(vllm: Any) -> Client:
    """By the adapter."""
    client = Client()
    client.engine = vllm.VllmEngine(types.SimpleNamespace(engine_client=client))
    client.engine.attach(None)
    return client


def state(client: Client) -> str | None:
    found: str | None = client.engine.condition()
    return found


async def test_sleep_and_waking(vllm: Any) -> None:
    """Asleep from the call on, by position or name; awake only with all of its memory, and then paused no more."""
    client = watched(vllm)
    assert state(client) is None
    client.step.clear()
    going = asyncio.create_task(client.sleep(2, "wait"))
    await asyncio.sleep(0)
    assert state(client) == "asleep"
    client.step.set()
    await going
    assert await client.wake_up(["weights"]) is False
    assert state(client) == "asleep"
    await client.resume_generation()
    assert state(client) == "asleep"
    assert await client.wake_up(tags=["kv_cache"]) is True
    assert state(client) is None
    await client.sleep(level=1)
    assert state(client) == "asleep"
    await client.wake_up()
    assert state(client) is None
    assert client.calls[0] == ("sleep", 2, "wait")


async def test_level_0_is_a_pause(vllm: Any) -> None:
    """Nothing is lost, so requests may wait; but one that sleeps already sleeps on."""
    client = watched(vllm)
    await client.sleep(0)
    assert state(client) == "paused"
    await client.wake_up(["scheduling"])
    assert state(client) is None
    await client.sleep()
    await client.sleep(0)
    assert state(client) == "asleep"


async def test_pausing_and_going_on(vllm: Any) -> None:
    """From the call on until the end of the other, in whatever mode."""
    client = watched(vllm)
    for mode in ("abort", "wait", "keep"):
        await client.pause_generation(mode=mode, clear_cache=False)
        assert state(client) == "paused"
        client.step.clear()
        going = asyncio.create_task(client.resume_generation())
        await asyncio.sleep(0)
        assert state(client) == "paused"
        client.step.set()
        await going
        assert state(client) is None
    await client.pause_generation()
    await client.release_kv_cache_memory()
    assert state(client) == "asleep"  # without its cache it cannot just go on
    await client.wake_up()
    assert state(client) is None
    assert client.calls[0] == ("pause", "abort", False)


async def test_a_call_that_fails_has_changed_nothing(vllm: Any) -> None:
    """One that was given up has."""
    client = watched(vllm)
    client.fails = ValueError("Invalid pause mode: x")
    for call in (client.sleep, client.pause_generation, client.release_kv_cache_memory):
        with pytest.raises(ValueError, match="Invalid"):
            await call()
        assert state(client) is None
    client.fails = None
    await client.sleep()
    client.fails = RuntimeError("no")
    for name in ("wake_up", "resume_generation"):
        with pytest.raises(RuntimeError, match="no"):
            await getattr(client, name)()
        assert state(client) == "asleep"
    client.fails = None
    await client.wake_up()
    client.step.clear()
    going = asyncio.create_task(client.sleep())
    await asyncio.sleep(0)
    going.cancel()
    await asyncio.wait({going})
    assert state(client) == "asleep"


async def test_a_request_that_comes_to_an_engine_that_has_just_fallen_asleep_is_refused(vllm: Any) -> None:
    """In vLLM's way, with what the caller is told in the ticket; what the shim knows nothing of is let through."""
    client = watched(vllm)
    await client.sleep()
    ticket = Ticket("x")
    running = asyncio.create_task(_generate(client, ticket))
    with pytest.raises(Exception, match="asleep"):
        await running
    assert ticket.refusal is not None
    assert ticket.refusal.code == "model_loading"
    assert ("generate",) not in client.calls
    await asyncio.create_task(_generate(client, None))
    await client.wake_up()
    await asyncio.create_task(_generate(client, Ticket("y")))
    assert client.calls.count(("generate",)) == 2


async def _generate(client: Client, ticket: Ticket | None) -> None:
    if ticket is not None:
        enter(ticket)
    async for _ in client.generate({"prompt_token_ids": [1]}, Params(), "id"):
        pass


async def test_a_dead_engine_is_dead_whatever_else_it_is(vllm: Any) -> None:
    """vLLM has seen it die."""
    client = watched(vllm)
    await client.sleep()
    client.errored = True
    assert state(client) == "dead"


@pytest.fixture
def gauge() -> Iterator[Gauge]:
    """The metric that vLLM keeps of it."""
    found = Gauge("vllm:engine_sleep_state", "x", ["engine", "model_name", "sleep_state"])
    yield found
    REGISTRY.unregister(found)


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1, 0, 0), None), ((0, 1, 0), "asleep"), ((0, 0, 1), "asleep"), ((0, 0, 0), "paused")],
)
async def test_what_it_was_before_the_shim_could_watch_is_read_from_its_metric(
    vllm: Any, gauge: Gauge, values: tuple[int, int, int], expected: str | None
) -> None:
    """Without a call to the engine, which might not answer."""
    for name, value in zip(("awake", "weights_offloaded", "discard_all"), values, strict=True):
        gauge.labels("0", "m", name).set(value)
    client = watched(vllm)
    assert state(client) == expected
    await client.wake_up()
    assert state(client) is None
    assert client.calls == [("wake_up", None)]


async def test_an_engine_that_is_being_rescaled_is_loading(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM answers 503 to everything meanwhile."""
    rescaling = True
    module = types.ModuleType("middleware")
    module.get_scaling_elastic_ep = lambda: rescaling  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm.entrypoints.serve.elastic_ep.middleware", module)
    for name in ("vllm.entrypoints", "vllm.entrypoints.serve", "vllm.entrypoints.serve.elastic_ep"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    client = watched(vllm)
    assert state(client) == "loading"
    await client.pause_generation()
    assert state(client) == "paused"
    await client.resume_generation()
    rescaling = False
    assert state(client) is None


async def test_a_vllm_without_one_of_the_calls_is_not_watched(vllm: Any, caplog: pytest.LogCaptureFixture) -> None:
    """One line names it; half a watch would tell half the truth."""
    client = Client()
    client.wake_up = None  # type: ignore[assignment,method-assign]
    engine = vllm.VllmEngine(types.SimpleNamespace(engine_client=client))
    with caplog.at_level(logging.ERROR, "lastword_shim"):
        engine.attach(None)
    assert "this vLLM has no wake_up: an engine that sleeps or is paused is not noticed" in caplog.messages
    await client.sleep()
    assert engine.condition() is None
