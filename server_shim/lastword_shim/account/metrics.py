"""Prometheus metrics, in the default registry, so that they stand on the engine's own ``/metrics``.

Counters and histograms only: in a server of several processes (``PROMETHEUS_MULTIPROC_DIR``) they add up by themselves.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from prometheus_client import Counter, Histogram

_SECONDS: Final = (0.005, 0.02, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Metrics:
    """The shim's metrics.  ``metrics()`` gives the process's one set: a name can be registered once only."""

    def __init__(self) -> None:
        self.requests = Counter(
            "lastword_requests_total",
            "Requests by outcome and contract code (code is none where the request completed).",
            ["outcome", "code"],
        )
        self.without_done = Counter(
            "lastword_stream_without_done_total",
            "Streams that the engine ended without an honest terminal event.",
        )
        self.disconnects = Counter(
            "lastword_client_disconnects_total",
            "Requests whose client left before the end, by what the engine was doing with them.",
            ["phase"],
        )
        self.wasted_tokens = Counter(
            "lastword_wasted_tokens_total", "Tokens generated for clients that left before the end."
        )
        self.wasted_seconds = Counter(
            "lastword_wasted_seconds_total", "Seconds of generation for clients that left before the end."
        )
        self.records_dropped = Counter(
            "lastword_records_dropped_total", "Lifecycle records that could not be written in time, or at all."
        )
        self.records_not_set_aside = Counter(
            "lastword_records_not_set_aside_total",
            "Times that the file of lifecycle records had reached its bound and could not be set aside.",
        )
        self.queue_time = Histogram(
            "lastword_queue_time_seconds", "Time from receipt until the engine began.", buckets=_SECONDS
        )
        self.generation_time = Histogram(
            "lastword_generation_time_seconds", "Time from the first token to the last.", buckets=_SECONDS
        )


@cache
def metrics() -> Metrics:
    """The process's metrics, registered on the first call."""
    return Metrics()
