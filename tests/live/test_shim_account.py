"""The shim's account of real vLLM: times by the engine's clock, tokens that add up to the engine's, spans that hang together."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.live.asking import CHAT, GENERATED, LONG, Asking, ask, chat, connected, started
from tests.live.conftest import StartVllm
from tests.live.vllm_server import VllmServer
from tests.shim.otlp import Receiver, receiving
from tests.shim.wire import conforms

# What vLLM itself measures, as sums over its finished requests (seconds).
CLOCK = {"queue": "vllm:request_queue_time_seconds_sum", "decode": "vllm:request_decode_time_seconds_sum"}


def clock(vllm: VllmServer) -> dict[str, float]:
    return {name: vllm.metric(metric) for name, metric in CLOCK.items()}


@pytest.fixture(autouse=True)
def idle(request: pytest.FixtureRequest) -> None:
    if "vllm" in request.fixturenames:
        vllm: VllmServer = request.getfixturevalue("vllm")
        vllm.step_back()
        vllm.wait_idle()


@pytest.mark.parametrize("stream", [True, False])
def test_times_are_the_engines_own(vllm: VllmServer, stream: bool) -> None:
    """Of the ninth of nine where eight have a place: its queue is the engine's, and so is its generation, to the millisecond."""
    assert ask(vllm, chat(max_tokens=2), path=CHAT).status == 200  # so that the sums are there
    eight = started(vllm, stream=True, n=8)
    request_id = f"ninth-{stream}"
    body = {**LONG, "max_tokens": 60, "min_tokens": 60, "stream": stream}
    ninth = Asking(vllm, body, headers={"x-request-id": request_id})
    time.sleep(0.5)
    eight.leave()
    assert ninth.wait().status == 200
    (record,) = vllm.wait_records(request_id=request_id)
    conforms(record, "record")
    assert record["queue_time_ms"] > 50
    assert record["queue_time_ms"] < record["time_to_first_token_ms"]
    assert record["time_to_first_token_ms"] + record["generation_time_ms"] <= record["total_time_ms"] + 5
    alone = f"alone-{stream}"
    vllm.wait_idle()
    before = clock(vllm)
    ask(vllm, body, headers={"x-request-id": alone})
    (record,) = vllm.wait_records(request_id=alone)
    vllm.wait_for(lambda: clock(vllm)["decode"] > before["decode"], "vLLM's own measurement")
    after = clock(vllm)
    assert record["generation_time_ms"] == pytest.approx((after["decode"] - before["decode"]) * 1000, abs=1.0)
    assert record["queue_time_ms"] >= (after["queue"] - before["queue"]) * 1000 - 1.0


@pytest.mark.parametrize("stream", [True, False])
def test_tokens_of_clients_that_left_add_up_to_the_engines(vllm: VllmServer, stream: bool) -> None:
    """On an idle engine: what the records count, before and after the disconnect, is what the engine generated."""
    before = vllm.metric(GENERATED)
    ids = [f"left-{stream}-{number}" for number in range(8)]
    for number, request_id in enumerate(ids):
        body = {**LONG, "stream": stream, "n": 1 + number % 8}
        begun = vllm.metric(GENERATED)
        with connected(vllm, body, headers={"x-request-id": request_id}):
            vllm.wait_for(lambda: vllm.metric(GENERATED) > begun + 10, "generation", 20)  # noqa: B023 (called at once)
        vllm.wait_idle(timeout=5)
    records = [vllm.wait_records(request_id=request_id)[0] for request_id in ids]
    for record in records:
        conforms(record, "record")
        assert record["completion_tokens"] == record["tokens_at_disconnect"] + record["tokens_after_disconnect"]
        assert 0 < record["generation_time_ms"] < record["total_time_ms"] + 1000
        assert record["queue_time_ms"] is not None
    assert sum(record["completion_tokens"] for record in records) == vllm.metric(GENERATED) - before


def test_one_that_left_the_queue_has_no_times_that_never_were(vllm: VllmServer) -> None:
    """The engine stands still meanwhile."""
    survivor = started(vllm, stream=True, n=8)
    vllm.signal_engine(signal.SIGSTOP)
    try:
        with connected(vllm, {**LONG, "stream": True}, headers={"x-request-id": "never-begun"}):
            time.sleep(1)
        (record,) = vllm.wait_records(request_id="never-begun", timeout=5)
    finally:
        vllm.signal_engine(signal.SIGCONT)
    survivor.leave()
    times = ("queue_time_ms", "time_to_first_token_ms", "generation_time_ms")
    assert [record[name] for name in times] == [None] * 3
    assert (record["tokens_at_disconnect"], record["tokens_after_disconnect"], record["wasted"]) == (0, 0, False)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def spans(receiver: Receiver) -> dict[str, Any]:
    return {
        span.name: span
        for request in receiver.traces
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }


def test_vllms_span_is_the_child_of_ours_which_is_the_callers(start_vllm: StartVllm, receiver: Receiver) -> None:
    """Both through the provider that vLLM has set; what is left is sent before the process ends."""
    endpoint = f"{receiver.url}/v1/traces"
    server = start_vllm(
        args=["--otlp-traces-endpoint", endpoint],
        env={
            "LASTWORD_OTEL": "on",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        },
    )
    caller = f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01"
    assert ask(server, chat(), path=CHAT, headers={"traceparent": caller}).status == 200
    ours = f"POST {CHAT}"
    server.wait_for(lambda: {ours, "llm_request"} <= spans(receiver).keys(), "both spans", 15)
    found = spans(receiver)
    assert found[ours].parent_span_id.hex() == caller.split("-")[2]
    assert found["llm_request"].parent_span_id == found[ours].span_id
    assert {found[name].trace_id.hex() for name in (ours, "llm_request")} == {caller.split("-")[1]}
    attributes = {each.key: each.value for each in found[ours].attributes}
    assert attributes["gen_ai.provider.name"].string_value == "vllm"
    assert attributes["gen_ai.usage.output_tokens"].int_value == 8
