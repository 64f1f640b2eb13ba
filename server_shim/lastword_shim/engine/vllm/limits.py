"""What vLLM bounds by itself, and what its processes mean for bounds of the shim's.

vLLM counts in ``AsyncLLM.check_admission``, before it queues anything: ``--max-num-queued-reqs`` is about requests that
have not ended, running ones too, all API servers together; ``--max-num-queued-tokens`` about prompts in prefill.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from lastword._classify import ErrorInfo
from lastword._codes import CODES, Code
from lastword_shim._settings import PREFIX, Settings
from lastword_shim.engine import Remark
from lastword_shim.engine.vllm.missing import missing

_COUNTED: Final = ("max_inflight", "max_queued", "max_inflight_tokens", "max_queued_tokens")
_BACKLOG: Final = "prefill token backlog"


class Limits:
    """Reads the configuration of one engine client."""

    def __init__(self, client: Any) -> None:
        self._config = getattr(client, "vllm_config", None)

    def attach(self) -> None:
        """Say what is not there to be read."""
        if not hasattr(getattr(self._config, "parallel_config", None), "_api_process_count"):
            missing("vllm_config.parallel_config._api_process_count", "bounds may hold for each process by itself")
        if not hasattr(getattr(self._config, "scheduler_config", None), "max_num_queued_reqs"):
            missing("vllm_config.scheduler_config.max_num_queued_reqs", "its own bounds are not told")

    @property
    def processes(self) -> int:
        """API servers that share the engine."""
        count = getattr(getattr(self._config, "parallel_config", None), "_api_process_count", 1)
        return count if isinstance(count, int) else 1

    @property
    def requests(self) -> int | None:
        """``--max-num-queued-reqs``."""
        return self._scheduler("max_num_queued_reqs")

    @property
    def tokens(self) -> int | None:
        """``--max-num-queued-tokens``."""
        return self._scheduler("max_num_queued_tokens")

    def fault(self, settings: Settings) -> str | None:
        """Bounds that each of several processes would count by itself."""
        names = settings.variables(_COUNTED)
        if self.processes < 2 or not names:
            return None
        return (
            f"{', '.join(names)} would hold for each of the {self.processes} API server processes by itself, and not for "
            f"all of them together. Start vLLM with --api-server-count 1, or leave {'these' if names[1:] else 'this'} "
            "unset, or put the sidecar in front, which counts for all: lastword shim --upstream URL"
        )

    def remarks(self, settings: Settings) -> Iterator[Remark]:
        """What vLLM refuses by itself, and what does not go well together."""
        bounds = []
        if self.requests is not None:
            bounds.append(f"more than {self.requests} unfinished requests (--max-num-queued-reqs)")
        if self.tokens is not None:
            bounds.append(f"requests beside {self.tokens} prompt tokens in prefill (--max-num-queued-tokens)")
        if bounds:
            yield Remark(f"vLLM itself refuses {' and '.join(bounds)}")
        if self.requests is not None and settings.max_inflight is not None and settings.max_inflight > self.requests:
            yield Remark(
                f"{PREFIX}MAX_INFLIGHT={settings.max_inflight} is more than vLLM takes, so that it refuses some that have "
                "waited for their turn: set it lower, or --max-num-queued-reqs higher",
                warns=True,
            )
        if self.processes > 1 and not getattr(self._config, "shutdown_timeout", None):
            yield Remark(
                f"with {self.processes} API server processes and --shutdown-timeout 0 vLLM kills them at once when it is "
                "told to stop, so that open requests get no last word: set --shutdown-timeout",
                warns=True,
            )

    def restate(self, error: ErrorInfo) -> ErrorInfo:
        """Its own refusal, with the bound that it is about."""
        if error.code != Code.QUEUE_OVERLOADED:
            return error
        backlog = _BACKLOG in error.message
        name, bound = ("max_num_queued_tokens", self.tokens) if backlog else ("max_num_queued_reqs", self.requests)
        details = {} if bound is None else {name: bound}
        return replace(error, message=CODES[Code.QUEUE_OVERLOADED].brief, details=details, raw=None)

    def _scheduler(self, name: str) -> int | None:
        value = getattr(getattr(self._config, "scheduler_config", None), name, None)
        return value if isinstance(value, int) else None
