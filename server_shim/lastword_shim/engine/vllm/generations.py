"""Each generation of vLLM's, from the rendered prompt to the last token."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

from vllm.exceptions import VLLMClientError, VLLMValidationError

from lastword_shim.engine import Refusal, Ticket, current
from lastword_shim.engine.vllm.missing import missing
from lastword_shim.engine.vllm.poolings import prompt_length
from lastword_shim.engine.vllm.times import read_times
from lastword_shim.protocol.redact import loggable_traceback

_log: Final = logging.getLogger("lastword_shim")
SCHEDULER_LAG: Final = 0.5
"""Seconds after which a request that was handed over must show in the scheduler's counts."""


class Generations:
    """Wraps ``generate`` of one AsyncLLM, ``client``, and reads what its output processor holds."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._holders: Counter[str] = Counter()  # exchanges by the id that the engine knows them under
        self._shared: set[str] = set()  # those of them that several have, or had at the same time
        self._pending: dict[int, Ticket] = {}  # handed over, no token yet, oldest first
        self._states: Mapping[str, Any] | None = None
        self._external: Mapping[str, list[str]] | None = None

    def attach(self) -> None:
        """Wrap what is there to be wrapped."""
        client = self._client
        processor: Any = getattr(client, "output_processor", None)
        self._states = getattr(processor, "request_states", None)
        self._external = getattr(processor, "external_req_ids", None)
        if not isinstance(self._states, Mapping) or not isinstance(self._external, Mapping):
            self._states = self._external = None
            missing("output_processor.request_states", "tokens are counted only as they are handed out")
        if self.max_model_len() is None:
            missing("vllm_config.model_config.max_model_len", "max_tokens is not checked against the context")
        if callable(getattr(client, "generate", None)):
            self._original_generate = client.generate
            client.generate = self._generate
        else:
            missing("generate", "no token counts, and no refusal before the queue")
        if callable(getattr(processor, "update_scheduler_stats", None)):
            self._original_stats = processor.update_scheduler_stats
            processor.update_scheduler_stats = self._scheduler_stats
        else:
            missing("output_processor.update_scheduler_stats", "the queue limit counts until the first token")

    def max_model_len(self) -> int | None:
        """The context's size now: ``--max-model-len auto`` settles it after the start."""
        config = getattr(getattr(self._client, "vllm_config", None), "model_config", None)
        length = getattr(config, "max_model_len", None)
        return length if isinstance(length, int) else None

    def refresh(self, ticket: Ticket) -> bool:
        """Count what the output processor holds, which is ahead of what has been handed out."""
        if self._states is None or self._external is None:
            return False
        live: dict[str, Any] = ticket.notes.setdefault("live", {})
        ids = ticket.notes.get("ids", ())
        if not self._shared.isdisjoint(ids):
            return False  # a body may name its own id, and so may another's: whose tokens these are cannot be told
        for external in ids:
            for internal in self._external.get(external, ()):
                if internal not in live and internal in self._states:
                    live[internal] = self._states[internal]
                    ticket.submitted(sequences=0, at=ticket.notes.get("handed_at"))
        if live:
            ticket.counting()
            ticket.produced(sum(_tokens(state) for state in live.values()))
            read_times(ticket, [getattr(state, "stats", None) for state in live.values()])
        return True

    # Before the queue.

    def _generate(self, prompt: Any, sampling_params: Any, request_id: str, *args: Any, **options: Any) -> Any:
        """In place of ``AsyncLLM.generate``, which is asked with the rendered prompt before vLLM has answered anything.

        Raises:
            VLLMValidationError: prompt and explicit max_tokens do not fit; vLLM answers it as it does its own.
        """
        ticket = current()
        try:
            outputs = self._original_generate(prompt, sampling_params, request_id, *args, **options)
        except Exception as error:
            _note(error, ticket)
            raise
        if ticket is None:
            return outputs
        beam = "-beam-" in request_id  # one sub-request a token: its prompt grows, so only the first is looked at
        if not (beam and ticket.prompt_tokens is not None):
            length = prompt_length(prompt)
            if length is not None:
                try:
                    ticket.admit(length, max_model_len=self.max_model_len())
                except Refusal as refused:
                    value = ticket.max_tokens
                    raise VLLMValidationError(str(refused), parameter="max_tokens", value=value) from refused
            if not beam:
                ticket.effective_max_tokens = getattr(sampling_params, "max_tokens", None)
        mark, open_ones = object(), ticket.notes.setdefault("open", {})
        observed = self._observe(outputs, ticket, sampling_params, request_id, mark, beam=beam)
        open_ones[mark] = (request_id, observed)
        return observed

    async def _observe(
        self,
        outputs: AsyncGenerator[Any, None],
        ticket: Ticket,
        params: Any,
        request_id: str,
        mark: object,
        *,
        beam: bool,
    ) -> AsyncGenerator[Any, None]:
        ticket.notes.setdefault("handed_at", time.monotonic())
        if not beam:
            ticket.notes.setdefault("ids", []).append(request_id)
        self._holders[request_id] += 1
        if self._holders[request_id] > 1:
            self._shared.add(request_id)
        ticket.sequences += getattr(params, "n", 1) or 1
        self._pending[id(ticket)], is_pending = ticket, True
        try:
            async for output in outputs:  # once a token: what has been seen is not looked at again, or comes at the end
                if ticket.submitted_at is None:
                    ticket.submitted(sequences=0, at=ticket.notes["handed_at"])
                made = 0
                for part in getattr(output, "outputs", ()):
                    made += len(getattr(part, "token_ids", ()))
                    if reason := getattr(part, "finish_reason", None):
                        ticket.finish_reasons.add(str(reason))
                if ticket.queue_seconds is None or getattr(output, "finished", False):
                    read_times(ticket, [getattr(output, "metrics", None)])
                ticket.handed_out(made)
                if is_pending and ticket.first_token_at is not None:
                    is_pending = False
                    self._pending.pop(id(ticket), None)
                yield output
        except Exception as error:
            _note(error, ticket)
            raise
        finally:
            self._pending.pop(id(ticket), None)
            self._let_go(request_id, ticket)
            await outputs.aclose()  # ours is closed where vLLM's was to be: that aborts the request
            await self._abort(request_id, holders=0)  # it knows of no choices while it is still handing them over
            ticket.notes["open"].pop(mark, None)

    def _let_go(self, request_id: str, ticket: Ticket) -> None:
        """From now on what the engine knows under this id is somebody else's."""
        self.refresh(ticket)  # a dead engine forgets nothing and hands out nothing
        if request_id in ticket.notes.get("ids", ()):
            ticket.notes["ids"].remove(request_id)
        self._holders[request_id] -= 1
        if not self._holders[request_id]:
            del self._holders[request_id]
            self._shared.discard(request_id)

    async def release(self, ticket: Ticket) -> None:
        """Close what the application has left open.

        A stream that is cancelled while it sends drops its generator without closing it, and until the interpreter
        happens to collect that, vLLM generates for nobody.
        """
        open_ones: dict[object, tuple[str, AsyncGenerator[Any, None]]] = ticket.notes.get("open", {})
        for request_id, observed in list(open_ones.values()):
            try:
                await observed.aclose()
            except RuntimeError:  # somebody is reading it: the application has not stopped
                await self._abort(request_id, holders=1)
        open_ones.clear()

    async def _abort(self, request_id: str, *, holders: int) -> None:
        """What the engine still knows under this id, unless more than these have it: a body may name its own."""
        if self._external and request_id in self._external and self._holders.get(request_id, 0) == holders:
            try:
                await self._client.abort(request_id)
            except Exception as error:  # noqa: BLE001 (the exchange has ended, whatever it was)
                _log.error("request_id=%s vLLM does not abort it (%s)", request_id, type(error).__name__)

    def _scheduler_stats(self, stats: Any) -> None:
        """Told after each step: how many wait tells which do, for they are taken in order."""
        self._original_stats(stats)
        if stats is None or not self._pending:
            return
        waiting = getattr(stats, "num_waiting_reqs", 0) + getattr(stats, "num_skipped_waiting_reqs", 0)
        latest = time.monotonic() - SCHEDULER_LAG
        settled = [ticket for ticket in self._pending.values() if ticket.notes["handed_at"] < latest]
        begun = sum(ticket.sequences for ticket in settled) - waiting
        for ticket in settled:
            begun -= ticket.sequences
            if begun < 0:
                break
            ticket.scheduled()


def _tokens(state: Any) -> int:
    detokenizer: Any = getattr(state, "detokenizer", None)
    counted = detokenizer.num_output_tokens() if hasattr(detokenizer, "num_output_tokens") else None
    return counted if isinstance(counted, int) else 0


def _note(error: Exception, ticket: Ticket | None) -> None:
    """Log what vLLM will have shortened by the time that it answers; not what is the caller's own mistake."""
    if ticket is not None and not isinstance(error, VLLMClientError):
        where = loggable_traceback(error, ticket.secrets)
        _log.error("request_id=%s the engine raised %s\n%s", ticket.request_id, type(error).__name__, where)
