"""Whether vLLM's engine sleeps, is paused, or is being rescaled, by what it was told through this process.

vLLM can be asked, but only by a call to its engine, which a paused engine may answer late and a hung one never.  So the
calls that change it are watched instead: ``sleep``, ``wake_up``, ``pause_generation``, ``resume_generation`` and
``release_kv_cache_memory`` of one AsyncLLM, from the moment that they are made.  A call that fails has changed nothing;
one that was given up may still take effect, and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from prometheus_client import REGISTRY
from vllm.exceptions import VLLMValidationError

from lastword_shim.admission.refusals import asleep
from lastword_shim.engine import Condition, current
from lastword_shim.engine.vllm.missing import missing

_SWITCHES: Final = ("sleep", "wake_up", "pause_generation", "resume_generation")
_GAUGE: Final = "vllm:engine_sleep_state"


class States:
    """Wraps what switches the engine of ``client``."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._asleep = self._paused = False
        self._rescales: Callable[[], bool] = _never

    def attach(self) -> None:
        """Wrap what is there to be wrapped."""
        client = self._client
        absent = [name for name in _SWITCHES if not callable(getattr(client, name, None))]
        if absent:
            missing(", ".join(absent), "an engine that sleeps or is paused is not noticed")
            return
        self._asleep, self._paused = _told_by_its_gauge()
        self._sleep, self._wake_up = client.sleep, client.wake_up
        self._pause, self._resume = client.pause_generation, client.resume_generation
        client.sleep, client.wake_up = self._go_to_sleep, self._be_woken
        client.pause_generation, client.resume_generation = self._be_paused, self._go_on
        if callable(getattr(client, "generate", None)):
            self._generate = client.generate
            client.generate = self._generate_if_awake
        if callable(getattr(client, "release_kv_cache_memory", None)):
            self._release = client.release_kv_cache_memory
            client.release_kv_cache_memory = self._lose_its_cache
        try:
            from vllm.entrypoints.serve.elastic_ep.middleware import get_scaling_elastic_ep
        except ImportError:
            missing("get_scaling_elastic_ep", "an engine that is being rescaled is not noticed")
        else:
            self._rescales = get_scaling_elastic_ep

    def condition(self) -> Condition | None:
        """What keeps a living engine from generating."""
        if self._asleep:
            return "asleep"
        if self._paused:
            return "paused"
        return "loading" if self._rescales() else None

    def _generate_if_awake(self, *args: Any, **options: Any) -> Any:
        """In place of ``generate``: it has fallen asleep since the request was let in, and vLLM would wait for ever.

        Raises:
            VLLMValidationError: so it is; what the caller is told stands in the ticket.
        """
        ticket = current()
        if self._asleep and ticket is not None:
            ticket.refusal = asleep()
            raise VLLMValidationError(ticket.refusal.message, parameter="model", value=None)
        return self._generate(*args, **options)

    async def _go_to_sleep(self, level: int = 1, *args: Any, **options: Any) -> Any:
        """Level 0 keeps the memory and stops the scheduler only: it is a pause."""
        before = self._asleep, self._paused
        self._asleep, self._paused = self._asleep or level > 0, True
        return await self._unless_it_fails(before, self._sleep(level, *args, **options))

    async def _be_paused(self, *args: Any, **options: Any) -> Any:
        before = self._asleep, self._paused
        self._paused = True
        return await self._unless_it_fails(before, self._pause(*args, **options))

    async def _lose_its_cache(self, *args: Any, **options: Any) -> Any:
        """It cannot go on without being woken."""
        before = self._asleep, self._paused
        self._asleep = True
        return await self._unless_it_fails(before, self._release(*args, **options))

    async def _be_woken(self, *args: Any, **options: Any) -> Any:
        """With some of its memory only it sleeps on, and vLLM says so; with all of it, it goes on, paused or not."""
        awake = await self._wake_up(*args, **options)
        if awake is not False:
            self._asleep = self._paused = False
        return awake

    async def _go_on(self, *args: Any, **options: Any) -> Any:
        result = await self._resume(*args, **options)
        self._paused = False
        return result

    async def _unless_it_fails(self, before: tuple[bool, bool], switching: Any) -> Any:
        try:
            return await switching
        except Exception:
            self._asleep, self._paused = before
            raise


def _told_by_its_gauge() -> tuple[bool, bool]:
    """What vLLM's metric says before the shim could watch, as (asleep, paused)."""
    told = {
        sample.labels.get("sleep_state"): sample.value
        for metric in REGISTRY.restricted_registry([_GAUGE]).collect()
        for sample in metric.samples
    }
    if told.get("awake", 1) != 0:
        return False, False
    return any(told.get(name, 0) == 1 for name in ("weights_offloaded", "discard_all")), True


def _never() -> bool:
    return False
