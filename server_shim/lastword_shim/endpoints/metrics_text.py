"""The shim's own metrics, for a scraper that cannot find them on the engine's ``/metrics``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
_OWN: Final = "lastword_"


class _Own(Collector):
    """Only the shim's: whatever else is registered in this process may not be for everybody."""

    def collect(self) -> Iterator[Metric]:
        """Those of the default registry that are the shim's."""
        return (metric for metric in REGISTRY.collect() if metric.name.startswith(_OWN))


def metrics_text() -> bytes:
    """All metrics of this process whose names begin with ``lastword_``, in the text format."""
    registry = CollectorRegistry()
    registry.register(_Own())
    return generate_latest(registry)
