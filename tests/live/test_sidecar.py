"""The sidecar in front of real engines: llama.cpp's server with SmolLM2, and vLLM."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import environments  # scripts/scoreboard
import pytest
from tests.live.asking import CONTEXT, MUCH
from tests.live.turns import go_first
from tests.live.vllm_server import ROOT, VllmServer
from tests.sidecar.process import Running, asking, get, last_event, left_alone, sidecar, started_server, until

WORDS = {"model": "m", "messages": [{"role": "user", "content": "What is a lighthouse for?"}], "temperature": 0}
LONG = {**WORDS, "max_tokens": 1500, "stream": True, "ignore_eos": True}
SLOW = {**LONG, "max_tokens": MUCH, "n": 4, "temperature": 1}


@contextlib.contextmanager
def llama(port: int = 0) -> Iterator[Running]:
    script = ROOT / "tests" / "conformance" / "servers" / "llama_cpp.py"
    with started_server([str(environments.ready("llama-cpp")), str(script), str(port)]) as running:
        yield running


@pytest.fixture(scope="module")
def record_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sidecar") / "records.jsonl"


@pytest.fixture(scope="module")
def words(record_file: Path) -> Iterator[tuple[Running, Running]]:
    """llama.cpp, and the sidecar in front of it."""
    with llama() as engine, sidecar(engine.url, LASTWORD_RECORDS=str(record_file)) as server:
        yield engine, server


def record_of(file: Path, request_id: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    def there() -> bool:
        found[:] = [json.loads(line) for line in file.read_text("utf-8").splitlines() if request_id in line]
        return bool(found)

    until(there)
    (record,) = found
    return record


def test_real_words_pass(words: tuple[Running, Running], record_file: Path) -> None:
    """A stream to its [DONE]; the record has tokens and times by the engine's own count, though nobody asked for usage."""
    _, server = words
    with asking(server.port, {**WORDS, "max_tokens": 8, "stream": True}, x_request_id="words") as answer:
        events = [part.removeprefix("data: ") for part in answer.read().decode().split("\n\n") if part]
    assert events[-1] == "[DONE]"
    said = "".join(json.loads(event)["choices"][0]["delta"].get("content") or "" for event in events[:-1])
    assert re.search("[a-z]{3,} [a-z]+", said), said
    record = record_of(record_file, "words")
    assert (record["state"], record["completion_tokens"], record["finish_reasons"]) == ("completed", 8, ["length"])
    assert record["prompt_tokens"] > 5
    assert 0 < record["generation_time_ms"] < record["total_time_ms"]


def test_a_prompt_that_does_not_fit_is_named(words: tuple[Running, Running]) -> None:
    body = {"messages": [{"role": "user", "content": "word " * 4000}], "max_tokens": 4}
    with asking(words[1].port, {"model": "m", **body}) as answer:
        error = json.loads(answer.read())["error"]
    assert (answer.status, error["code"]) == (400, "context_length_exceeded")
    assert error["details"]["max_model_len"] == 2048


def test_a_caller_that_leaves_a_stream_stops_the_engine(words: tuple[Running, Running], record_file: Path) -> None:
    """llama.cpp's own count of requests at work is 0 a moment later."""
    engine, server = words
    with left_alone(server.port, LONG, x_request_id="leaves") as client:
        until(lambda: at_work(engine) == 1, 20)
        client.recv(400)
    left_at = time.monotonic()
    until(lambda: at_work(engine) == 0, 5)
    assert time.monotonic() - left_at < 3
    record = record_of(record_file, "leaves")
    assert (record["error_code"], record["tokens_after_disconnect"]) == ("client_disconnected", None)


def test_a_caller_that_leaves_a_whole_answer_stops_the_engine(
    words: tuple[Running, Running], record_file: Path
) -> None:
    """llama.cpp looks after its caller once a second, but not while it is asked for its count: so it is left alone."""
    engine, server = words
    with left_alone(server.port, {**LONG, "max_tokens": 1900, "stream": False}, x_request_id="whole"):
        until(lambda: at_work(engine) == 1, 20)
    for _ in range(5):
        time.sleep(3)
        if at_work(engine) == 0:
            break
    assert (at_work(engine), metric(engine, "n_tokens_max") < 1900) == (0, True)
    record = record_of(record_file, "whole")
    assert (record["error_code"], record["tokens_after_disconnect"]) == ("client_disconnected", None)


def at_work(engine: Running) -> int:
    return metric(engine, "requests_processing")


def metric(engine: Running, name: str) -> int:
    found = re.search(rf"^llamacpp:{name} (\d+)", get(engine.port, "/metrics")[1].decode(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_an_engine_that_is_killed_and_comes_back() -> None:
    """A real model's process, in the middle of its words; the sidecar stays and serves again."""
    with llama() as engine, sidecar(engine.url) as server:
        with asking(server.port, LONG) as answer:
            answer.read(400)
            engine.process.kill()
            assert last_event(answer)["error"]["code"] == "engine_unavailable"
        assert get(server.port, "/lastword/ready")[0] == 503
        with llama(engine.port):
            until(lambda: get(server.port, "/lastword/ready")[0] == 200, 20)
            with asking(server.port, {**WORDS, "max_tokens": 2}) as answer:
                assert answer.status == 200


@pytest.mark.fresh(shim=False, args=("--enable-per-request-metrics",))
def test_in_front_of_vllm(fresh_vllm: VllmServer, tmp_path: Path) -> None:
    """Times by its own clock, its keep-alive survived, callers that leave, words put right, and its process killed."""
    fresh_vllm.step_back()
    file = tmp_path / "records.jsonl"
    with sidecar(fresh_vllm.root_url, LASTWORD_RECORDS=str(file)) as server:
        usage = {"stream": True, "stream_options": {"include_usage": True}}
        with asking(server.port, {**LONG, **usage, "max_tokens": 20}, x_request_id="timed") as answer:
            assert last_event(answer) == "[DONE]"
        record = record_of(file, "timed")
        assert (record["state"], record["completion_tokens"]) == ("completed", 20)
        assert record["queue_time_ms"] >= 0
        assert 0 < record["generation_time_ms"] < record["total_time_ms"]
        for pause in (4.9, 5.0, 5.1, 0):  # vLLM closes idle connections after 5 s
            with asking(server.port, {**WORDS, "max_tokens": 1}) as answer:
                assert answer.status == 200
            time.sleep(pause)
        leave_vllm(server, fresh_vllm)
        with asking(
            server.port, {**WORDS, "max_tokens": 4, "messages": [{"role": "user", "content": "x" * CONTEXT}]}
        ) as answer:
            assert json.loads(answer.read())["error"]["code"] == "context_length_exceeded"
        with ThreadPoolExecutor(initializer=go_first) as beside, asking(server.port, SLOW) as stream:
            whole = beside.submit(ask_whole, server.port)
            stream.read(400)
            until(lambda: fresh_vllm.metric("vllm:num_requests_running") == 8, 10, "they are not both at work")
            engine = fresh_vllm.engine_pid()
            fresh_vllm.process.kill()
            assert last_event(stream)["error"]["code"] == "engine_unavailable"
            assert whole.result() == (503, "engine_unavailable")
        os.kill(engine, signal.SIGKILL)  # it would go on for a while
        assert get(server.port, "/lastword/ready")[0] == 503
        assert not any("Traceback" in line for line in server.said)


def leave_vllm(server: Running, engine: VllmServer) -> None:
    for stream in (True, False):
        with left_alone(server.port, {**SLOW, "stream": stream}):
            until(lambda: engine.metric("vllm:num_requests_running") > 0, 10, "it is not at work")
        left_at = time.monotonic()
        until(lambda: engine.metric("vllm:num_requests_running") == 0, 5, "it is still at work")
        assert time.monotonic() - left_at < 2


def ask_whole(port: int) -> tuple[int, str]:
    with asking(port, {**SLOW, "stream": False}) as answer:
        return answer.status, json.loads(answer.read())["error"]["code"]
