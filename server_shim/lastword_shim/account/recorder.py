"""What is kept of an exchange that has ended: its record, and the metrics."""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from lastword._classify import ErrorInfo
from lastword._codes import CODES
from lastword_shim.account.lifecycle import Lifecycle
from lastword_shim.account.metrics import Metrics
from lastword_shim.account.sink import FileSink, StreamSink
from lastword_shim.account.writer import Writer

if TYPE_CHECKING:
    from lastword_shim.account.otel import Telemetry

_STDOUT: Final = 1
DRAINED_WITHIN: Final = 1.0
"""Seconds that a server which stops waits for its records; the interpreter's exit gives them more."""


class Recorder:
    """Writes each record once: a line of JSON, and the metrics.  A file that cannot be written never fails a request.

    ``target`` is a path, ``-`` for standard output or None for none; a file is set aside before it is larger than
    ``max_bytes`` (None: never), and ``keep`` of those are kept.
    """

    def __init__(
        self,
        target: str | None,
        metrics: Metrics,
        *,
        max_bytes: int | None = None,
        keep: int = 0,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._metrics = metrics
        self._telemetry = telemetry
        self._writer: Writer | None = None
        if target is not None:
            stuck = metrics.records_not_set_aside.inc
            file = FileSink(target, max_bytes=max_bytes, keep=keep, on_stuck=stuck)
            self._writer = Writer(StreamSink(_STDOUT) if target == "-" else file, metrics.records_dropped.inc)
            weakref.finalize(self, self._writer.stop).atexit = False  # at the exit the writers have their time

    def write(self, life: Lifecycle, error: ErrorInfo | None, status: int | None) -> dict[str, Any]:
        """Record an exchange that has ended."""
        record = life.record(error, status)
        self._count(life, record)
        if self._telemetry is not None:
            self._telemetry.ended(record, life)
        if self._writer is not None:
            self._writer.put(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        return record

    async def drained(self, patience: float = DRAINED_WITHIN) -> bool:
        """Wait until every record has been written, for at most ``patience`` seconds; whether it has."""
        return self._writer is None or await self._writer.drained(patience)

    def _count(self, life: Lifecycle, record: Mapping[str, Any]) -> None:
        metrics = self._metrics
        code = record["error_code"] or "none"
        known = code == "none" or code in CODES  # an engine's own codes must not make a label without end
        metrics.requests.labels(record["outcome"], code if known else "unknown").inc()
        if life.queue_seconds is not None:
            metrics.queue_time.observe(max(life.queue_seconds, 0.0))
        if life.generation_seconds is not None:
            metrics.generation_time.observe(life.generation_seconds)
        if record["client_disconnected"]:
            metrics.disconnects.labels(record["disconnect_phase"]).inc()
            if record["wasted"]:
                metrics.wasted_tokens.inc(record["completion_tokens"] or 0)  # None: seen but not counted
                metrics.wasted_seconds.inc(life.wasted_seconds)
