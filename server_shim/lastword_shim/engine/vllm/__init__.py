"""vLLM from inside its API server process: token counts, refusal before the queue, its states, and its shutdown.

Supported: 0.32.x.  vLLM gives middleware no interface for any of this, so each attribute that is touched is looked at
first; one that is missing switches its feature off with one line in the log.

Touched, all on instances: ``app.state.engine_client`` (AsyncLLM: ``generate``, ``encode``, ``shutdown``,
``vllm_config.model_config.max_model_len``, ``.scheduler_config``, ``.parallel_config``, ``.shutdown_timeout``,
``output_processor.request_states``, ``.external_req_ids``, ``.update_scheduler_stats``; ``sleep``, ``wake_up``,
``pause_generation``, ``resume_generation``, ``release_kv_cache_memory``) and ``app.state.server`` (uvicorn:
``config.timeout_graceful_shutdown``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

import vllm

from lastword._classify import ErrorInfo
from lastword_shim._settings import Settings
from lastword_shim.engine import Condition, Host, Remark, Ticket
from lastword_shim.engine.vllm import words
from lastword_shim.engine.vllm.generations import Generations
from lastword_shim.engine.vllm.limits import Limits
from lastword_shim.engine.vllm.poolings import Poolings
from lastword_shim.engine.vllm.states import States
from lastword_shim.engine.vllm.stopping import Stopping

_log: Final = logging.getLogger("lastword_shim")
SUPPORTED: Final = "0.32"


class VllmEngine:
    """The engine behind one vLLM application; ``state`` is its ``app.state``."""

    provider: Final = "vllm"
    counts_tokens: Final = True
    title: Final = "vLLM, in this process"

    def __init__(self, state: Any) -> None:
        self._client = state.engine_client
        self._generations = Generations(self._client)
        self._poolings = Poolings(self._client)
        self._states = States(self._client)
        self._limits = Limits(self._client)
        self._stopping = Stopping(self._client, getattr(state, "server", None), processes=self._limits.processes)

    def attach(self, host: Host) -> None:
        """Wrap what is there to be wrapped."""
        if not str(vllm.__version__).startswith(SUPPORTED):
            _log.warning("this is vLLM %s; lastword_shim is written against %s.x", vllm.__version__, SUPPORTED)
        self._limits.attach()
        self._generations.attach()
        self._poolings.attach()
        self._states.attach()  # after it: its own ``generate`` stands outside
        self._stopping.attach(host, asyncio.get_running_loop())

    def fault(self, settings: Settings) -> str | None:
        """Bounds that would not hold for all of vLLM's processes together."""
        return self._limits.fault(settings)

    def remarks(self, settings: Settings) -> Iterable[Remark]:
        """What vLLM bounds itself."""
        return self._limits.remarks(settings)

    def condition(self) -> Condition | None:
        """Whether vLLM has seen its engine die, and what it was told to do."""
        return "dead" if getattr(self._client, "errored", False) is True else self._states.condition()

    def processes(self) -> int:
        """``--api-server-count``, or what vLLM made of it."""
        return self._limits.processes

    def max_model_len(self) -> int | None:
        """The context's size now, in tokens."""
        return self._generations.max_model_len()

    def refresh(self, ticket: Ticket) -> bool:
        """Count what the output processor holds, which is ahead of what has been handed out."""
        return self._generations.refresh(ticket)

    async def release(self, ticket: Ticket) -> None:
        """Abort what the application has left at work."""
        await self._generations.release(ticket)

    def explain(self, error: BaseException) -> ErrorInfo | None:
        """As vLLM's own handlers would have answered."""
        return words.explain(error)

    def restate(self, error: ErrorInfo, ticket: Ticket) -> ErrorInfo:
        """Put better what vLLM's words mislead about."""
        dead = getattr(self._client, "errored", False) is True
        return words.restate(self._limits.restate(error), ticket, limit=self.max_model_len(), dead=dead)
