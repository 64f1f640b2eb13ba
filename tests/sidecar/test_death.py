"""The sidecar outlives its engine: a real process behind it is killed, frozen and started again."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.sidecar.process import asking, engine, get, last_event, sidecar, until

STREAM = {"max_tokens": 500, "stream": True}


def records(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def ask_whole(port: int) -> tuple[int, str]:
    with asking(port, {"max_tokens": 500}, x_request_id="whole") as answer:
        return answer.status, json.loads(answer.read())["error"]["code"]


def test_an_engine_that_is_killed_is_told_to_all_who_wait_for_it(tmp_path: Path) -> None:
    """Stream and whole answer get one last word each: 503, for nothing listens there any more; then it is recovered from."""
    file = tmp_path / "records.jsonl"
    with engine("--pace", "0.02") as behind, sidecar(behind.url, LASTWORD_RECORDS=str(file)) as server:
        with ThreadPoolExecutor() as beside, asking(server.port, STREAM, x_request_id="stream") as stream:
            whole = beside.submit(ask_whole, server.port)
            stream.read(300)
            until(lambda: b'vllm:num_requests_running{model_name="embedded"} 2' in get(behind.port, "/metrics")[1])
            behind.process.kill()
            assert last_event(stream)["error"]["code"] == "engine_unavailable"
            assert whole.result() == (503, "engine_unavailable"), server.said
        assert get(server.port, "/health")[0] == 503
        assert (get(server.port, "/lastword/ready")[0]) == 503
        with engine("--pace", "0.001", port=behind.port):
            with asking(server.port, {"max_tokens": 3}) as again:
                assert again.status == 200
            assert get(server.port, "/health")[0] == 200
            assert get(server.port, "/lastword/ready")[0] == 200
        assert not any("Traceback" in line for line in server.said)
    until(lambda: len(records(file)) == 3)
    by_id = {record["request_id"]: record for record in records(file)}
    assert (by_id["stream"]["state"], by_id["stream"]["error_code"]) == ("failed", "engine_unavailable")
    assert (by_id["whole"]["state"], by_id["whole"]["error_code"]) == ("failed", "engine_unavailable")


def test_an_engine_that_is_frozen_is_ended_by_the_timers() -> None:
    """It still accepts connections, so that only silence tells."""
    timers = {"LASTWORD_IDLE_TIMEOUT": "0.5", "LASTWORD_FIRST_TOKEN_TIMEOUT": "0.7"}
    with engine("--pace", "0.02") as behind, sidecar(behind.url, **timers) as server:
        with asking(server.port, STREAM) as stream:
            stream.read(300)
            behind.process.send_signal(signal.SIGSTOP)
            assert last_event(stream)["error"]["code"] == "generation_stalled"
        with asking(server.port, {"max_tokens": 5, "stream": True}) as answer:
            assert (answer.status, json.loads(answer.read())["error"]["code"]) == (504, "first_token_timeout")
        behind.process.send_signal(signal.SIGCONT)
        with asking(server.port, {"max_tokens": 3}) as again:
            assert again.status == 200


@pytest.mark.parametrize("ending", ["cut", "nothing", "error-200", "late-error", "abort", "engine-dead"])
def test_each_broken_ending_of_the_embedded_engine_gets_its_last_word(ending: str, shared: int) -> None:
    """As behind the middleware in its own process."""
    with asking(shared, {"max_tokens": 6, "stream": True}, x_demo_ending=ending) as answer:
        said = last_event(answer) if answer.status == 200 else json.loads(answer.read())
    error = said["error"]
    assert error["contract"] == "1"
    assert (
        error["code"]
        == {
            "cut": "bad_gateway",
            "nothing": "generation_aborted",
            "error-200": "internal_server_error",
            "late-error": "invalid_request_error",
            "abort": "generation_aborted",
            "engine-dead": "engine_unavailable",
        }[ending]
    )


@pytest.fixture(scope="module")
def shared() -> Iterator[int]:
    with engine("--pace", "0.001") as behind, sidecar(behind.url) as server:
        yield server.port
