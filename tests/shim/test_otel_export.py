"""OpenTelemetry as an operator sets it up: its variables, a real OTLP receiver, one that is dead, and what is not installed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.shim.otlp import Receiver, receiving

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = os.pathsep.join([str(ROOT / "sdk"), str(ROOT / "server_shim")])
ASK = {"model": "embedded", "messages": [{"role": "user", "content": "secret words"}], "max_tokens": 3}
# Starts the shim's application and says what became of that.
STARTS = """
import asyncio, sys
{before}
from lastword_shim import Settings, Shim
async def app(scope, receive, send): await send({{"type": "lifespan.startup.complete"}})
async def main():
    said = []
    async def receive(): return {{"type": "lifespan.startup"}}
    async def send(message): said.append(message)
    shim = Shim(app)
    await shim({{"type": "lifespan"}}, receive, send)
    print(said[0]["type"], said[0].get("message", ""))
    return shim
shim = asyncio.run(main())
{after}
"""


def starts(before: str = "", after: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", STARTS.format(before=before, after=after)]
    return subprocess.run(argv, env=environment(**variables), capture_output=True, text=True, timeout=30, check=False)


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "LASTWORD_"))}
    return {**kept, "PYTHONPATH": PACKAGES, "LASTWORD_OTEL": "on", **variables}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@contextlib.contextmanager
def embedded(**variables: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The embedded engine behind the shim as a process, and its port."""
    argv = [
        sys.executable,
        "-m",
        "lastword_shim.engine.embedded",
        "--port",
        "0",
        "--pace",
        "0.001",
        "--until-stdin-closes",
    ]
    process = subprocess.Popen(
        argv,
        env=environment(**variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline().rpartition(":")[2].removesuffix("/v1\n"))
        finally:
            process.kill()


def ask(port: int, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(ASK), {"content-type": "application/json", **headers}
        )
        answer = connection.getresponse()
        answer.read()
        return answer.status


def leave(process: subprocess.Popen[str]) -> float:
    """Let it end; how many seconds that took."""
    started = time.monotonic()
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=15) == 0
    return time.monotonic() - started


def test_spans_and_measurements_reach_a_receiver(receiver: Receiver) -> None:
    """At the latest at the exit; under the service's name, as the caller's child, and without a word of the prompt."""
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SERVICE_NAME": "chat-service"}
    with embedded(**variables) as (process, port):
        assert ask(port, traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") == 200
        assert leave(process) < 6
    (resource,) = [each for request in receiver.traces for each in request.resource_spans]
    assert [each.value.string_value for each in resource.resource.attributes if each.key == "service.name"] == [
        "chat-service"
    ]
    (span,) = [span for scope in resource.scope_spans for span in scope.spans]
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
    assert {each.key: each.value for each in span.attributes}["gen_ai.usage.output_tokens"].int_value == 3
    names = {
        metric.name
        for request in receiver.metrics
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {"gen_ai.server.request.duration", "gen_ai.server.time_to_first_token"} <= names
    assert not any(b"secret words" in body for body in receiver.raw)


def test_a_receiver_that_never_answers_holds_up_nothing() -> None:
    """It takes the connection and says nothing: requests are answered, and the process ends in its time."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with embedded(OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_BSP_SCHEDULE_DELAY="10") as (process, port):
            started = time.monotonic()
            assert [ask(port) for _ in range(3)] == [200] * 3
            assert time.monotonic() - started < 3
            assert leave(process) < 6


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.sdk"])
def test_without_the_extra_the_start_is_refused_with_what_to_install(missing: str) -> None:
    """And without LASTWORD_OTEL nobody misses it."""
    before = f"sys.modules['{missing}'] = None"
    done = starts(before)
    assert "lifespan.startup.failed lastword_shim: LASTWORD_OTEL=on needs lastword[otel]" in done.stdout
    assert "pip install '.[otel]' in a clone" in done.stdout
    assert starts(before, LASTWORD_OTEL="off").stdout.startswith("lifespan.startup.complete")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"OTEL_TRACES_EXPORTER": "nonesuch"},
            "OTEL_TRACES_EXPORTER='nonesuch' names an exporter that is not installed",
        ),
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "that is not installed (pip install opentelemetry-exporter-otlp-proto-grpc?)",
        ),
    ],
)
def test_an_exporter_that_is_not_there_is_named(variables: dict[str, str], said: str) -> None:
    """With the variable that asks for it."""
    assert said in starts(**variables).stdout


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": " console, none "},
    ],
)
def test_the_sdks_own_variables_count(variables: dict[str, str]) -> None:
    """Nothing is sent anywhere."""
    done = starts(**variables)
    assert done.stdout.startswith("lifespan.startup.complete")
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0)


def test_the_applications_own_providers_are_used_where_they_are_set() -> None:
    """And are the application's to shut down."""
    before = """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))
metrics.set_meter_provider(MeterProvider(shutdown_on_exit=False))
from lastword_shim.account import otel_providers
"""
    after = """
found = otel_providers.providers()
print(found == (trace.get_tracer_provider(), metrics.get_meter_provider()))
"""
    assert starts(before, after).stdout.splitlines()[-1] == "True"
