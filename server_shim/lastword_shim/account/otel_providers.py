"""Whom OpenTelemetry's spans and measurements go to: the application's providers, else ones of our own.

Ours are set up by OpenTelemetry's variables alone: ``OTEL_SERVICE_NAME``, ``OTEL_RESOURCE_ATTRIBUTES``,
``OTEL_TRACES_EXPORTER`` and ``OTEL_METRICS_EXPORTER`` (``otlp``, ``console``, ``none``, or another that is installed),
``OTEL_EXPORTER_OTLP_*``, ``OTEL_TRACES_SAMPLER``, ``OTEL_SDK_DISABLED`` and what else the SDK reads.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from lastword._extras import how_to_install

EXIT_PATIENCE: Final = 2.0
"""Seconds at the interpreter's exit for what has not been exported."""
MISSING: Final = f"LASTWORD_OTEL=on needs lastword[otel]: {how_to_install('otel')} (no module named {{name!r}})"
_PROTOCOLS: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


class OtelError(Exception):
    """OpenTelemetry cannot be set up as asked; the message says what to do."""


def look() -> None:
    """Whether `providers` could be had, without making any.

    Raises:
        OtelError: they could not.
    """
    try:
        import_module("opentelemetry.sdk.metrics")
        import_module("opentelemetry.sdk.trace")
    except ModuleNotFoundError as error:
        raise OtelError(MISSING.format(name=error.name)) from None
    for signal in ("traces", "metrics"):
        _exporters(signal)


def providers() -> tuple[Any, Any]:
    """The tracer provider and the meter provider.

    Raises:
        OtelError: a package is missing, or a variable names what is not there.
    """
    try:
        from opentelemetry import metrics, trace
        from opentelemetry.sdk import metrics as sdk_metrics
        from opentelemetry.sdk import trace as sdk_trace
        from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        raise OtelError(MISSING.format(name=error.name)) from None
    tracers: Any = trace.get_tracer_provider()
    meters: Any = metrics.get_meter_provider()
    own: list[Callable[[], object]] = []
    if isinstance(tracers, trace.ProxyTracerProvider):  # nobody has set one
        tracers = sdk_trace.TracerProvider(resource=_resource(), shutdown_on_exit=False)
        for exporter in _exporters("traces"):
            tracers.add_span_processor(BatchSpanProcessor(exporter()))
        own.append(tracers.shutdown)
    if type(meters).__name__ == "_ProxyMeterProvider":
        made = [exporter() for exporter in _exporters("metrics")]
        readers = [each if isinstance(each, MetricReader) else PeriodicExportingMetricReader(each) for each in made]
        meters = sdk_metrics.MeterProvider(readers, resource=_resource(), shutdown_on_exit=False)
        own.append(meters.shutdown)
    if own:
        _shut_down_at_exit(own)
    return tracers, meters


def _resource() -> Any:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: "lastword-shim"}))
    return found


def _exporters(signal: str) -> list[Callable[[], Any]]:
    """The exporters' classes that the variables name."""
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    names = [name.strip() for name in os.environ.get(variable, "otlp").split(",")]
    return [_exporter(signal, variable, name) for name in names if name not in {"", "none"}]


def _exporter(signal: str, variable: str, name: str) -> Callable[[], Any]:
    if name == "otlp":
        ours = f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL"
        variable = ours if os.environ.get(ours) else "OTEL_EXPORTER_OTLP_PROTOCOL"
        name = os.environ.get(variable) or "http/protobuf"
    known = _PROTOCOLS.get(name, name)
    found = entry_points(group=f"opentelemetry_{signal}_exporter", name=known)
    if not found:
        package = f"opentelemetry-exporter-{known.replace('_', '-')}"
        raise OtelError(f"{variable}={name!r} names an exporter that is not installed (pip install {package}?)")
    return _load(next(iter(found)))


def _load(found: EntryPoint) -> Callable[[], Any]:
    try:
        loaded: Callable[[], Any] = found.load()
    except ModuleNotFoundError as error:
        raise OtelError(MISSING.format(name=error.name)) from None
    return loaded


def _shut_down_at_exit(shutdowns: list[Callable[[], object]]) -> None:
    """An exporter whose receiver does not answer may take half a minute; nobody's exit waits for that.

    The thread is there beforehand, since none can be started any more at the exit.
    """
    ending, ended = threading.Event(), threading.Event()

    def run() -> None:
        ending.wait()
        for shutdown in shutdowns:
            shutdown()
        ended.set()

    threading.Thread(target=run, name="lastword-otel", daemon=True).start()

    @atexit.register
    def end() -> None:
        ending.set()
        ended.wait(EXIT_PATIENCE)
