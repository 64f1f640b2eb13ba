"""OpenTelemetry: a span a request, measurements, and that nothing of it can fail a request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from tests.shim.apps import DONE, EVENTS, WHOLE, Receive, Scope, Send, answering, chunk, read_body, streaming
from tests.shim.wire import serving

from lastword import _contract
from lastword._codes import OPENTELEMETRY
from lastword_shim.account import otel
from lastword_shim.engine.embedded import EmbeddedEngine

pytestmark = pytest.mark.anyio
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE = 0x4BF92F3577B34DA6A3CE929D0E0E4736


class Exported:
    """What the in-memory exporters hold."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)

    async def span(self) -> ReadableSpan:
        """The one span, once it has ended."""
        async with asyncio.timeout(5):
            while not (found := self._exporter.get_finished_spans()):
                await asyncio.sleep(0.005)
        assert len(found) == 1
        return found[0]

    def points(self, name: str) -> list[Any]:
        """The data points of a metric."""
        data = self._reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        return [
            point
            for scope in scopes
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exported]:
    found = Exported()
    monkeypatch.setattr(otel, "providers", lambda: (found.tracers, found.meters))
    yield found
    found.tracers.shutdown()
    found.meters.shutdown()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_request_is_one_span_with_the_records_values(exported: Exported) -> None:
    """Under the conventions' names, whose mapping is the registry's; null is left out."""
    async with serving(EmbeddedEngine(pace=0.001), otel=True) as server:
        body = {"model": "embedded", "messages": [{"role": "user", "content": "one two"}], "max_tokens": 5}
        await server.ask({**body, "stream": True}, headers={"traceparent": PARENT, "tracestate": "a=b"})
        record = await server.one_record()
        span = await exported.span()
    assert (span.name, span.kind, span.status.status_code) == (
        "POST /v1/chat/completions",
        SpanKind.SERVER,
        StatusCode.UNSET,
    )
    assert span.parent is not None
    assert (span.parent.trace_id, span.parent.span_id, span.parent.is_remote) == (TRACE, 0x00F067AA0BA902B7, True)
    expected: dict[str, Any] = {
        "http.request.method": "POST",
        "url.path": "/v1/chat/completions",
        "url.scheme": "http",
        "gen_ai.provider.name": "unknown",
    }
    for member, value in record.items():
        if value is not None and member not in {"side", "received_at"}:
            expected[OPENTELEMETRY.get(member, f"lastword.{member}")] = (
                tuple(value) if isinstance(value, list) else value
            )
    assert attributes(span) == expected
    assert attributes(span)["gen_ai.operation.name"] == "chat"
    assert attributes(span)["gen_ai.usage.output_tokens"] == 5
    assert attributes(span)["gen_ai.response.finish_reasons"] == ("length",)


@pytest.mark.parametrize("slashes", [1, 500])
async def test_slashes_behind_a_route_make_no_routes_without_end(exported: Exported, slashes: int) -> None:
    """A span's name has few values, whatever callers write."""
    async with serving(answering(WHOLE), otel=True) as server:
        await server.ask({"model": "m"}, path="/v1/chat/completions" + "/" * slashes)
        span = await exported.span()
    assert (span.name, attributes(span)["http.route"]) == ("POST /v1/chat/completions", "/v1/chat/completions")


async def test_the_application_gets_the_span_as_its_parent(exported: Exported) -> None:
    """In the head, instead of the caller's, and in the task's context; every other header stays."""
    seen: dict[str, Any] = {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen["headers"] = scope["headers"]
        seen["current"] = trace.get_current_span().get_span_context().span_id
        await answering(WHOLE)(scope, receive, send)

    async with serving(app, otel=True) as server:
        await server.ask({"model": "m"}, headers={"traceparent": PARENT, "TraceState": "a=b", "x-other": "1"})
        await server.one_record()
        span = await exported.span()
    assert span.context is not None
    inward = [value for name, value in seen["headers"] if name.lower() == b"traceparent"]
    assert inward == [b"00-%032x-%016x-01" % (TRACE, span.context.span_id)]
    assert [value for name, value in seen["headers"] if name.lower() == b"tracestate"] == [b"a=b"]
    assert (b"x-other", b"1") in seen["headers"]
    assert seen["current"] == span.context.span_id


async def test_without_a_parent_and_with_a_broken_one_a_trace_begins(exported: Exported) -> None:
    """Which the application goes on with all the same."""
    seen: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend(value for name, value in scope["headers"] if name == b"traceparent")
        await answering(WHOLE)(scope, receive, send)

    async with serving(app, otel=True) as server:
        await server.ask({"model": "m"}, headers={"traceparent": "00-none-of-it"})
        await server.one_record()
        span = await exported.span()
    assert span.parent is None
    assert span.context is not None
    assert [head[:53] for head in seen] == [b"00-%032x-%016x-" % (span.context.trace_id, span.context.span_id)]


@pytest.mark.parametrize(
    ("app", "body", "path", "expected", "status"),
    [
        (answering({"error": {"message": "no", "code": 400}}, status=400), {}, "/v1/completions",
         {"error.type": "invalid_request_error", "http.response.status_code": 400, "gen_ai.operation.name": "text_completion"},
         StatusCode.UNSET),
        (streaming(chunk("a"), ValueError("secret")), {"stream": True}, "/v1/chat/completions",
         {"error.type": "internal_server_error", "http.response.status_code": 200, "lastword.outcome": "failed"},
         StatusCode.ERROR),
        (answering(b"{}", status=503), {}, "/v1/messages",
         {"http.response.status_code": 503, "gen_ai.operation.name": "chat"}, StatusCode.ERROR),
        (answering(b"{}", status=404), {}, "/v1/secrets/are/many",
         {"error.type": "not_found", "url.path": "/v1/secrets/are/many"}, StatusCode.UNSET),
        (answering(b"{}"), {}, "/v1/embeddings", {"gen_ai.operation.name": "embeddings"}, StatusCode.UNSET),
        (answering(WHOLE), {"messages": []}, "/invocations", {"gen_ai.operation.name": "chat"}, StatusCode.UNSET),
    ],
)  # fmt: skip
async def test_what_failed_says_why(
    exported: Exported, app: Any, body: dict[str, Any], path: str, expected: dict[str, Any], status: StatusCode
) -> None:
    """An error of the server's is one of the span's; a caller's own mistake is none, by HTTP's rule."""
    async with serving(app, otel=True) as server:
        await server.ask({"model": "m", **body}, path=path)
        await server.one_record()
        span = await exported.span()
    assert expected.items() <= attributes(span).items()
    assert span.status.status_code is status
    assert ("http.route" in attributes(span)) == ("secrets" not in path)
    assert "secret" not in span.name
    assert not span.events


async def test_a_client_that_left_is_counted_with_what_it_cost(exported: Exported) -> None:
    """And is not the server's error."""
    async with serving(EmbeddedEngine(pace=0.005), otel=True) as server:
        body = {"model": "embedded", "prompt": "hi", "max_tokens": 900, "stream": True}
        async with server.connect(body, path="/v1/completions") as (reader, _):
            await reader.readuntil(b"text")
        record = await server.one_record()
        span = await exported.span()
    assert (attributes(span)["error.type"], span.status.status_code) == ("client_disconnected", StatusCode.UNSET)
    (tokens,) = exported.points("lastword.wasted_tokens")
    (seconds,) = exported.points("lastword.wasted_time")
    (gone,) = exported.points("lastword.client_disconnects")
    assert (tokens.value, gone.value) == (record["completion_tokens"], 1)
    assert seconds.value > 0
    assert gone.attributes["lastword.disconnect_phase"] == "generating"
    (duration,) = exported.points("gen_ai.server.request.duration")
    assert duration.attributes["error.type"] == "client_disconnected"
    assert exported.points("gen_ai.server.time_to_first_token") == []


async def test_measurements_have_the_conventions_names_and_few_values(exported: Exported) -> None:
    """A model that nobody answers for is no attribute of its own; other routes are not measured."""
    async with serving(EmbeddedEngine(pace=0.002), otel=True) as server:
        ask = {"model": "embedded", "messages": [], "max_tokens": 5, "n": 2}
        await server.ask(ask)
        await server.ask(ask)
        for name in ("no-such-model-1", "no-such-model-2"):
            await server.ask({**ask, "model": name})
        await server.ask({}, path="/v1/models", method="GET")
        await server.one_record(5)
    common = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "unknown"}
    found = {
        point.attributes["gen_ai.request.model"]: point for point in exported.points("gen_ai.server.request.duration")
    }
    assert dict(found["embedded"].attributes) == {**common, "gen_ai.request.model": "embedded"}
    assert dict(found["_OTHER"].attributes) == {
        **common,
        "gen_ai.request.model": "_OTHER",
        "error.type": "model_not_found",
    }
    assert (found["embedded"].count, found["_OTHER"].count) == (2, 2)
    assert found["embedded"].explicit_bounds[0] == 0.01
    (first,) = exported.points("gen_ai.server.time_to_first_token")
    (pace,) = exported.points("gen_ai.server.time_per_output_token")
    assert (first.count, pace.count) == (2, 2)
    assert 0.002 <= pace.sum / 2 < 0.1, "of one choice, not of both"


async def test_no_text_and_no_key_gets_into_a_span(exported: Exported) -> None:
    """Whatever the request and the answer hold."""
    async with serving(streaming(chunk("answer-text", finish="stop"), DONE), otel=True) as server:
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "prompt-text"}]}
        await server.ask(body, headers={"authorization": "Bearer key-text"})
        await server.one_record()
        span = await exported.span()
    assert not any(word in span.to_json() for word in ("answer-text", "prompt-text", "key-text"))


async def test_a_failure_of_opentelemetry_is_a_line_in_the_log_and_no_more(
    exported: Exported, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the begin as at the end; once."""

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("broken", "sk-0123456789abcdefghij")

    for where in ("_begin", "_end"):
        monkeypatch.setattr(otel.Telemetry, where, fail)
        with caplog.at_level(logging.ERROR, "lastword_shim"):
            async with serving(answering(WHOLE), otel=True) as server:
                for number in (1, 2):
                    assert (await server.ask({"model": "m"})).status == 200
                    await server.one_record(number)
        monkeypatch.undo()
        monkeypatch.setattr(otel, "providers", lambda: (exported.tracers, exported.meters))
    lines = [record.message.splitlines() for record in caplog.records]
    assert [(first, last) for first, *_, last in lines] == [
        ("OpenTelemetry failed; its spans and measurements are not complete", "RuntimeError: ('broken', '<key>')")
    ] * 2


async def test_an_exchange_that_raises_still_ends_its_span(exported: Exported) -> None:
    """A server whose send fails under it."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        raise asyncio.CancelledError

    async with serving(app, otel=True) as server:
        await server.ask({"model": "m", "stream": True})
        await server.one_record()
        span = await exported.span()
    assert span.end_time is not None


def test_the_mapping_is_the_registrys() -> None:
    """One list; and it names members that a record has."""
    registry = _contract.load("registry.json")["opentelemetry"]
    assert dict(OPENTELEMETRY) == registry
    assert registry.keys() <= _contract.schemas()["urn:lastword:contract:1:record"]["properties"].keys()
