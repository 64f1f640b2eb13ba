"""vLLM from inside its API server process: token counts, refusal before the queue, and its shutdown.

Supported: 0.32.x.  vLLM gives middleware no interface for any of this, so each attribute that
is touched is looked at first; one that is missing switches its feature off with one line in the log.

Touched, all on instances: ``app.state.engine_client`` (AsyncLLM: ``generate``, ``shutdown``,
``vllm_config.model_config.max_model_len``, ``output_processor.request_states``, ``.external_req_ids``,
``.update_scheduler_stats``) and ``app.state.server`` (uvicorn: ``config.timeout_graceful_shutdown``).
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any, Final

import vllm
from vllm.exceptions import VLLMClientError, VLLMValidationError

from lastword._classify import ErrorInfo, make_error
from lastword._codes import CODES, Code
from lastword_shim.engine import Host, Refused, Ticket, current

_log: Final = logging.getLogger("lastword_shim")
SUPPORTED: Final = "0.32"
_OVER_THE_CONTEXT: Final = re.compile(r"=(\d+) cannot be greater than max_model_len=(\d+)")
_NO_ROOM: Final = "max_tokens must be at least 1, got 0"
SCHEDULER_LAG: Final = 0.5
"""Seconds after which a request that was handed over must show in the scheduler's counts."""
GRACEFUL_SHUTDOWN: Final = 3
"""Seconds that the HTTP server waits for connections once every request has had its terminal; vLLM sets no limit."""


class VllmEngine:
    """The engine behind one vLLM application; ``state`` is its ``app.state``."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._client = state.engine_client
        self._loop: asyncio.AbstractEventLoop | None = None
        self._host: Host | None = None
        self._holders: Counter[str] = Counter()  # exchanges by the id that the engine knows them under
        self._shared: set[str] = set()  # those of them that several have, or had at the same time
        self._pending: dict[int, Ticket] = {}  # handed over, no token yet, oldest first
        self._states: Mapping[str, Any] | None = None
        self._external: Mapping[str, list[str]] | None = None

    def attach(self, host: Host) -> None:
        """Wrap what is there to be wrapped."""
        if not str(vllm.__version__).startswith(SUPPORTED):
            _log.warning("this is vLLM %s; lastword_shim is written against %s.x", vllm.__version__, SUPPORTED)
        self._loop = asyncio.get_running_loop()
        self._host = host
        client = self._client
        processor: Any = getattr(client, "output_processor", None)
        self._states = getattr(processor, "request_states", None)
        self._external = getattr(processor, "external_req_ids", None)
        if not isinstance(self._states, Mapping) or not isinstance(self._external, Mapping):
            self._states = self._external = None
            _missing("output_processor.request_states", "tokens are counted only as they are handed out")
        if self.max_model_len() is None:
            _missing("vllm_config.model_config.max_model_len", "max_tokens is not checked against the context")
        if callable(getattr(client, "generate", None)):
            self._original_generate = client.generate
            client.generate = self._generate
        else:
            _missing("generate", "no token counts, and no refusal before the queue")
        if callable(getattr(client, "shutdown", None)):
            self._original_shutdown = client.shutdown
            client.shutdown = self._shutdown
        else:
            _missing("shutdown", "open requests get no terminal when the server stops")
        if callable(getattr(processor, "update_scheduler_stats", None)):
            self._original_stats = processor.update_scheduler_stats
            processor.update_scheduler_stats = self._scheduler_stats
        else:
            _missing("output_processor.update_scheduler_stats", "the queue limit counts until the first token")
        self._limit_graceful_shutdown()

    def max_model_len(self) -> int | None:
        """The context's size now: ``--max-model-len auto`` settles it after the start."""
        config = getattr(getattr(self._client, "vllm_config", None), "model_config", None)
        length = getattr(config, "max_model_len", None)
        return length if isinstance(length, int) else None

    def explain(self, error: BaseException) -> tuple[int, bytes] | None:
        """As vLLM's own handlers would have answered."""
        if not isinstance(error, Exception):
            return None
        try:
            from vllm.entrypoints.serve.exception_handling.error_response import create_error_response

            answer = create_error_response(error)
            return int(answer.error.code), answer.model_dump_json().encode()
        except Exception:  # noqa: BLE001 (the module is vLLM's own business; without it the error is a plain 500)
            return None

    def restate(self, error: ErrorInfo, ticket: Ticket) -> ErrorInfo:
        """Two of vLLM's answers to what does not fit the context name max_tokens only, one of them as if it were 0."""
        limit = self.max_model_len()
        too_many = _OVER_THE_CONTEXT.search(error.message)
        if too_many is not None and error.code == Code.INVALID_REQUEST_ERROR:
            details = {"max_tokens": int(too_many[1]), "max_model_len": int(too_many[2])}
        elif error.message.startswith(_NO_ROOM) and ticket.max_tokens != 0 and limit is not None:
            details = {"prompt_tokens": limit, "max_model_len": limit}
            message = f"The prompt fills the model's context of {limit} tokens, so that no token can be generated."
            error = replace(error, message=message, raw=None)
        elif error.code == Code.INTERNAL_SERVER_ERROR and getattr(self._client, "errored", False) is True:
            # In an answer that has begun, vLLM's own wrappers leave nothing of what its engine died of.
            return make_error(Code.ENGINE_UNAVAILABLE, CODES[Code.ENGINE_UNAVAILABLE].brief, origin="engine")
        else:
            return error
        return replace(error, code=str(Code.CONTEXT_LENGTH_EXCEEDED), details={**error.details, **details})

    # Counting.

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
            ticket.produced(sum(_tokens(state) for state in live.values()))
            self._times(ticket, getattr(next(iter(live.values())), "stats", None))
        return True

    def _times(self, ticket: Ticket, stats: Any) -> None:
        """vLLM's own clock readings; differences only, for they may come from another machine."""
        queued, scheduled = getattr(stats, "queued_ts", 0.0), getattr(stats, "scheduled_ts", 0.0)
        if ticket.queue_seconds is None and queued > 0 and scheduled >= queued:
            ticket.queue_seconds = scheduled - queued
            first = getattr(stats, "first_token_ts", 0.0)
            if ticket.submitted_at is not None and first >= queued:
                ticket.first_token_at = min(
                    ticket.first_token_at or time.monotonic(), ticket.submitted_at + first - queued
                )

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
            length = _prompt_length(prompt)
            if length is not None:
                try:
                    ticket.admit(length, max_model_len=self.max_model_len())
                except Refused as refused:
                    value = ticket.max_tokens
                    raise VLLMValidationError(str(refused), parameter="max_tokens", value=value) from refused
            if not beam:
                ticket.effective_max_tokens = getattr(sampling_params, "max_tokens", None)
        return self._observe(outputs, ticket, sampling_params, request_id, beam=beam)

    async def _observe(
        self, outputs: AsyncGenerator[Any, None], ticket: Ticket, params: Any, request_id: str, *, beam: bool
    ) -> AsyncGenerator[Any, None]:
        counts: dict[tuple[str, int], int] = ticket.notes.setdefault("counts", {})
        ticket.notes.setdefault("handed_at", time.monotonic())
        if not beam:
            ticket.notes.setdefault("ids", []).append(request_id)
        self._holders[request_id] += 1
        if self._holders[request_id] > 1:
            self._shared.add(request_id)
        ticket.sequences += getattr(params, "n", 1) or 1
        self._pending[id(ticket)] = ticket
        delta = getattr(getattr(params, "output_kind", None), "name", "") == "DELTA"
        try:
            async for output in outputs:
                ticket.submitted(sequences=0, at=ticket.notes["handed_at"])
                for part in getattr(output, "outputs", ()):
                    key = (request_id, getattr(part, "index", 0))
                    counts[key] = len(getattr(part, "token_ids", ())) + (counts.get(key, 0) if delta else 0)
                self._times(ticket, getattr(output, "metrics", None))
                ticket.produced(sum(counts.values()))
                if ticket.first_token_at is not None:
                    self._pending.pop(id(ticket), None)
                yield output
        except Exception as error:
            _note(error, ticket)
            raise
        finally:
            self._pending.pop(id(ticket), None)
            self._let_go(request_id, ticket)
            await outputs.aclose()  # ours is closed where vLLM's was to be: that aborts the request

    def _let_go(self, request_id: str, ticket: Ticket) -> None:
        """From now on what the engine knows under this id is somebody else's."""
        self.refresh(ticket)  # a dead engine forgets nothing and hands out nothing
        if request_id in ticket.notes.get("ids", ()):
            ticket.notes["ids"].remove(request_id)
        self._holders[request_id] -= 1
        if not self._holders[request_id]:
            del self._holders[request_id]
            self._shared.discard(request_id)

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

    # Stopping.

    def _shutdown(self, timeout: float | None = None) -> None:
        """In place of ``AsyncLLM.shutdown``, which vLLM's signal handler calls first of all, in a thread of its own.

        The engine lives on while open requests finish; it is stopped with what is left of the time.
        """
        started = time.monotonic()
        loop, host = self._loop, self._host
        if timeout is not None and loop is not None and host is not None and loop.is_running() and not _is_in(loop):
            drained = asyncio.run_coroutine_threadsafe(host.drain(timeout), loop)
            try:
                drained.result(timeout + 5.0)
            except Exception:  # noqa: BLE001 (whatever happened, the engine must be stopped)
                _log.exception("open requests could not be ended in order")
        left = None if timeout is None else max(timeout - (time.monotonic() - started), 0.0)
        self._original_shutdown(timeout=left)

    def _limit_graceful_shutdown(self) -> None:
        """From the start on: when the engine dies, vLLM stops its HTTP server without a word to us."""
        config: Any = getattr(getattr(self._state, "server", None), "config", None)
        if not hasattr(config, "timeout_graceful_shutdown"):
            _missing("server.config.timeout_graceful_shutdown", "a client that does not read can keep the process")
        elif config.timeout_graceful_shutdown is None:
            config.timeout_graceful_shutdown = GRACEFUL_SHUTDOWN


def _is_in(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return threading.get_ident() == getattr(loop, "_thread_id", None)


def _tokens(state: Any) -> int:
    detokenizer: Any = getattr(state, "detokenizer", None)
    counted = detokenizer.num_output_tokens() if hasattr(detokenizer, "num_output_tokens") else None
    return counted if isinstance(counted, int) else 0


def _prompt_length(prompt: Any) -> int | None:
    """Tokens of a rendered prompt: ``prompt_token_ids`` or ``prompt_embeds``, the decoder's of an encoder-decoder."""
    if isinstance(prompt, Mapping) and prompt.get("type") == "enc_dec":
        prompt = prompt.get("decoder_prompt")
    for name in ("prompt_token_ids", "prompt_embeds"):
        value = prompt.get(name) if isinstance(prompt, Mapping) else getattr(prompt, name, None)
        if value is not None:
            return len(value)
    return None


def _note(error: Exception, ticket: Ticket | None) -> None:
    """Log what vLLM will have shortened by the time that it answers; not what is the caller's own mistake."""
    if ticket is not None and not isinstance(error, VLLMClientError):
        _log.error("request_id=%s the engine raised %s", ticket.request_id, type(error).__name__, exc_info=error)


def _missing(attribute: str, consequence: str) -> None:
    _log.error("this vLLM has no %s: %s", attribute, consequence)
