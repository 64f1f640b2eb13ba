"""Bounds and deadlines on real vLLM: one server with both its own and the shim's, and one that must not start."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.live.ahead import shared_server
from tests.live.asking import CHAT, COMPLETIONS, LONG, Asking, ask, chat, frozen
from tests.live.turns import go_first
from tests.live.vllm_server import VllmServer
from tests.shim.wire import Answer, conforms

WAITING = "vllm:num_requests_waiting"
SHORT: dict[str, Any] = {"model": "m", "prompt": "hi", "max_tokens": 4, "ignore_eos": True}


# vLLM runs four at a time and takes twelve; the shim lets in eight, and eight more wait.
bounded = shared_server(
    "bounded",
    args=("--max-num-seqs", "4", "--max-num-queued-reqs", "12"),
    env={
        "LASTWORD_MAX_INFLIGHT": "8",
        "LASTWORD_MAX_QUEUED": "8",
        "LASTWORD_MAX_INFLIGHT_TOKENS": "3000",
        "LASTWORD_OVERLOAD_STATUS": "429",
    },
)


@pytest.fixture(autouse=True)
def records_conform(bounded: VllmServer) -> Iterator[None]:
    bounded.step_back()
    bounded.wait_idle()
    before = len(bounded.records())
    yield
    bounded.wait_idle()
    for record in bounded.records()[before:]:
        conforms(record, "record")


@pytest.fixture
def many() -> Iterator[Callable[..., Future[Answer]]]:
    """Ask beside the test: ``many(server, body, headers=…)``."""
    with ThreadPoolExecutor(32, initializer=go_first) as pool:
        yield lambda *arguments, **options: pool.submit(ask, *arguments, **options)


def counted(server: VllmServer) -> int:
    """Prompt tokens of what is open, as vLLM has told them."""
    return sum(each["prompt_tokens"] or 0 for each in json.loads(server.get("/lastword/requests")[1])["requests"])


def test_prompt_tokens_are_counted_by_vllm_itself(bounded: VllmServer, many: Callable[..., Future[Answer]]) -> None:
    """An estimate lets it in, and the true length refuses it before the engine has it. First of all: later the rate is known."""
    prompts = bounded.metric("vllm:prompt_tokens_total")
    with frozen(bounded):
        inside = [many(bounded, {**SHORT, "prompt": "a" * length}) for length in (1500, 600)]
        bounded.wait_for(lambda: counted(bounded) == 2100, "two at the engine", 10)
        refused = ask(bounded, {**SHORT, "prompt": "a" * 1400, "stream": True})
    assert (refused.status, refused.error["code"]) == (429, "queue_overloaded")
    details = refused.error["details"]
    assert (details["prompt_tokens"], details["inflight_tokens"], details["max_inflight_tokens"]) == (1400, 2100, 3000)
    assert [future.result().status for future in inside] == [200, 200]
    bounded.wait_idle()
    assert bounded.metric("vllm:prompt_tokens_total") - prompts == 2100
    (record,) = bounded.wait_records(request_id=refused.error["request_id"])
    assert (record["state"], record["prompt_tokens"]) == ("rejected", 1400)


def test_the_start_tells_what_vllm_bounds_itself(bounded: VllmServer) -> None:
    """In the line that says what is mounted."""
    (line,) = [line for line in bounded.log_text().splitlines() if "lastword_shim is mounted" in line]
    assert "vLLM itself refuses more than 12 unfinished requests (--max-num-queued-reqs)" in line
    assert " INFO " in f" {line} "


@pytest.mark.parametrize("stream", [True, False])
def test_vllms_own_refusals_are_told_like_the_shims(bounded: VllmServer, stream: bool) -> None:
    """It counts each of n; bare vLLM answers 503 without a word about when to come again."""
    for path, body in ((COMPLETIONS, {**SHORT, "n": 13}), (CHAT, chat(n=13))):
        answer = ask(bounded, {**body, "stream": stream}, path=path)
        assert (answer.status, answer.error["code"], answer.error["origin"]) == (429, "queue_overloaded", "engine")
        assert answer.error["details"] == {"max_num_queued_reqs": 12}
        assert 0 < answer.error["retry_after_ms"] <= 120_000
        assert answer.header("x-should-retry") == "true"
        (record,) = bounded.wait_records(request_id=answer.error["request_id"])
        assert record["state"] == "rejected"


def test_of_a_burst_exactly_those_are_refused_that_do_not_fit(
    bounded: VllmServer, many: Callable[..., Future[Answer]]
) -> None:
    """Twenty against eight and eight, while the engine stands still; then all that were let in are served."""
    with frozen(bounded):
        before = len(bounded.records())
        futures = [many(bounded, {**SHORT, "stream": number % 2 == 0}) for number in range(20)]
        bounded.wait_for(lambda: len(bounded.records()) - before == 4, "four refusals")
        time.sleep(0.3)
        assert len(bounded.records()) - before == 4
    answers = [future.result() for future in futures]
    assert sorted(answer.status for answer in answers) == [200] * 16 + [429] * 4
    for answer in answers:
        if answer.status == 429:
            assert answer.error["details"]["waiting"] == answer.error["details"]["inflight"] == 8


@pytest.mark.parametrize("stream", [True, False])
def test_a_deadline_that_passes_in_the_shims_line(
    bounded: VllmServer, many: Callable[..., Future[Answer]], stream: bool
) -> None:
    """504 in time; vLLM never heard of it, and the engine goes on with the others."""
    with frozen(bounded):
        others = [many(bounded, SHORT) for _ in range(8)]
        time.sleep(0.2)
        began = time.monotonic()
        late = ask(bounded, {**SHORT, "stream": stream}, headers={"request-timeout-ms": "500"})
        assert 0.5 <= time.monotonic() - began < 1.5
    assert (late.status, late.error["code"]) == (504, "deadline_exceeded")
    assert [future.result().status for future in others] == [200] * 8
    (record,) = bounded.wait_records(request_id=late.error["request_id"])
    assert (record["state"], record["prompt_tokens"], record["timeout_kind"]) == ("rejected", None, "total")


@pytest.mark.parametrize("stream", [True, False])
def test_a_deadline_that_passes_in_vllms_queue(bounded: VllmServer, stream: bool) -> None:
    """Four run, the fifth waits in vLLM; it is taken out of there, and no token is made for it."""
    running = [Asking(bounded, {**LONG, "stream": True}) for _ in range(4)]
    assert all(asking.begun.wait(20) for asking in running)
    with frozen(bounded):  # none of them may end before the deadline
        late = ask(bounded, {**LONG, "stream": stream}, headers={"request-timeout-ms": "900"})
    assert (late.status, late.error["code"]) == (504, "deadline_exceeded")
    bounded.wait_for(lambda: bounded.metric(WAITING) == 0, "an empty queue", 2)
    (record,) = bounded.wait_records(request_id=late.error["request_id"])
    assert (record["state"], record["completion_tokens"], record["time_to_first_token_ms"]) == ("failed", 0, None)
    running[0].goes_on()
    for asking in running:
        asking.leave()
    bounded.wait_idle()


@pytest.mark.parametrize("stream", [True, False])
def test_a_deadline_that_passes_while_generating_frees_the_place(
    bounded: VllmServer, many: Callable[..., Future[Answer]], stream: bool
) -> None:
    """Eight that generate or wait in vLLM and run out of time; the ninth, in line behind them, is served then."""
    taken = "/lastword/requests?state=queued&state=generating"
    with frozen(bounded):  # however long it takes them to arrive
        late = [many(bounded, {**LONG, "stream": stream}, headers={"request-timeout-ms": "8000"}) for _ in range(8)]
        bounded.wait_for(lambda: json.loads(bounded.get(taken)[1])["total"] == 8, "eight at the engine", 7)
    assert ask(bounded, SHORT, timeout=30).status == 200
    for answer in [future.result() for future in late]:
        error = answer.error if answer.status != 200 else answer.event_error
        assert error["code"] == "deadline_exceeded"


def test_what_cannot_begin_in_time_is_refused_at_once_by_the_measured_pace(bounded: VllmServer) -> None:
    """A line that moves; a caller who has 400 ms is told how long it is, and one who has a minute is served."""
    before = len(bounded.records())
    body = {**SHORT, "max_tokens": 500, "min_tokens": 500}
    stop = threading.Event()

    def client() -> list[int]:
        statuses = []
        while not stop.is_set():
            statuses.append(ask(bounded, body).status)
        return statuses

    with ThreadPoolExecutor(14, initializer=go_first) as pool:
        clients = [pool.submit(client) for _ in range(14)]
        bounded.wait_for(lambda: len(bounded.records()) - before >= 14, "fourteen turns", 30)
        late = ask(bounded, body, headers={"request-timeout-ms": "400"})
        in_time = ask(bounded, body, headers={"request-timeout-ms": "60000"})
        stop.set()
        statuses = {status for client_ in clients for status in client_.result()}
    assert (late.status, late.error["code"]) == (429, "queue_overloaded")
    details = late.error["details"]
    assert 0 < details["deadline_ms"] <= 400 < details["estimated_wait_ms"] < 20_000
    assert in_time.status == 200
    assert statuses == {200}


@pytest.mark.fresh(args=("--api-server-count", "2"), env={"LASTWORD_MAX_INFLIGHT": "8"})
def test_several_api_servers_with_a_bound_do_not_start(launched_vllm: VllmServer) -> None:
    """Each would count by itself.  Soon after vLLM would be ready, with a status that says so, and with what to set."""
    status = launched_vllm.process.wait(150)
    log = launched_vllm.log_text()
    assert status != 0
    assert "LASTWORD_MAX_INFLIGHT would hold for each of the 2 API server processes by itself" in log
    for remedy in ("--api-server-count 1", "unset", "lastword shim --upstream URL", "set --shutdown-timeout"):
        assert remedy in log
    assert "Application startup complete" not in log
