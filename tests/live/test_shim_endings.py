"""What ends a server, or only its engine: silence, death, SIGTERM.  Each test has a server of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import Any

import pytest
from tests.live.asking import LONG, Asking, ask, chat, connected, read, started
from tests.live.vllm_server import VllmServer
from tests.shim.wire import conforms

LIMITS = {"LASTWORD_IDLE_TIMEOUT": "6", "LASTWORD_FIRST_TOKEN_TIMEOUT": "4", "LASTWORD_TOTAL_TIMEOUT": "60"}


def records_conform(server: VllmServer, count: int) -> list[dict[str, Any]]:
    found = server.wait_records(count)
    for record in found:
        conforms(record, "record")
    assert len(found) == count
    return found


@pytest.mark.fresh(env=LIMITS)
def test_an_engine_that_falls_silent_and_then_dies(fresh_vllm: VllmServer) -> None:
    """SIGSTOP: /health stays 200, so limits must end what runs and what waits; then SIGCONT, and SIGKILL in mid-stream."""
    server = fresh_vllm
    server.step_back()
    whole, stream = started(server, stream=False, n=3), started(server, stream=True, n=3)
    server.signal_engine(signal.SIGSTOP)
    begun = time.monotonic()
    late_stream, late_whole = Asking(server, {**LONG, "stream": True}), Asking(server, {**LONG, "stream": False})
    for late in (late_stream, late_whole):
        answer = late.wait(20)
        assert answer.status in {200, 504}  # the status line is out after the hold
        error = answer.error if answer.status == 504 else answer.event_error
        assert error["code"] == "first_token_timeout"
    assert late_whole.wait().status == 504
    assert stream.wait(20).event_error["code"] == "generation_stalled"
    assert (whole.wait(20).status, whole.wait().error["code"]) == (504, "generation_stalled")
    assert time.monotonic() - begun < 15
    server.signal_engine(signal.SIGCONT)
    server.wait_idle(timeout=10)  # each of them was aborted inside
    kinds = [record["timeout_kind"] for record in records_conform(server, 4)]
    assert sorted(kinds) == ["first_token", "first_token", "idle", "idle"]

    whole, stream = started(server, stream=False, n=3), started(server, stream=True, n=3)
    server.signal_engine(signal.SIGKILL)
    assert stream.wait(20).event_error["code"] == "engine_unavailable"
    answer = whole.wait(20)
    assert (answer.status, answer.error["code"], answer.header("x-should-retry")) == (503, "engine_unavailable", "true")
    try:
        after = ask(server, chat(), path="/v1/chat/completions")
    except OSError:
        pass  # it has noticed, and gone
    else:
        assert (after.status, after.error["code"]) == (503, "engine_unavailable")
    server.process.wait(30)
    assert server.port_closed()
    # The orphaned worker notices by itself that its parent has died, with or without the shim; it takes its time.
    server.wait_for(lambda: not server.processes(), "end of the worker", 40)


def gone(server: VllmServer, within: float) -> None:
    """The process has exited with success, its port is closed, and none of its processes is left."""
    try:
        status = server.process.wait(within)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"still there after {within} s:\n{server.log_tail()}") from None
    assert status == 0
    assert server.port_closed()
    server.wait_for(
        lambda: not [title for title in server.processes().values() if "VLLM" in title], "end of the engine", 5
    )


@pytest.mark.parametrize("_round", range(3))
@pytest.mark.fresh(args=("--shutdown-timeout", "0"))
def test_sigterm_without_time_to_finish(fresh_vllm: VllmServer, _round: int) -> None:
    """Bare vLLM: silence for ever in nine of thirteen runs, a false success in one.  So this is done again and again."""
    server = fresh_vllm
    server.step_back()
    whole, stream = (Asking(server, {**LONG, "stream": stream, "n": 3}) for stream in (False, True))
    assert stream.begun.wait(20)
    engine = server.engine_pid()
    os.kill(engine, signal.SIGSTOP)  # neither may end before the server is told to stop
    with connected(server, {**LONG, "stream": True, "n": 4}) as held:  # queued or not, it has had no token to show
        sent = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(ProcessLookupError):  # killed already
            os.kill(engine, signal.SIGCONT)
        answer = read(held.getresponse())
    assert stream.wait(10).event_error["code"] == "server_shutting_down"
    assert (whole.wait(10).status, whole.wait().error["code"]) == (503, "server_shutting_down")
    assert whole.wait().header("x-should-retry") == "true"
    assert (answer.event_error if answer.status == 200 else answer.error)["code"] == "server_shutting_down"
    assert max(stream.ended_at, whole.ended_at) - sent < 1.5
    gone(server, 20)
    assert {record["error_code"] for record in records_conform(server, 3)} == {"server_shutting_down"}


@pytest.mark.parametrize(("frozen", "_round"), [(False, 0), (True, 1), (False, 2)])
@pytest.mark.fresh(args=("--shutdown-timeout", "10"))
def test_sigterm_with_time_to_finish(fresh_vllm: VllmServer, frozen: bool, _round: int) -> None:
    """Open requests finish, new ones are refused at once; with an engine that does nothing any more they are ended."""
    server = fresh_vllm
    if frozen:
        server.step_back()
    length = {} if frozen else {"max_tokens": 700, "min_tokens": 700}  # under two seconds on an idle machine
    whole, stream = started(server, stream=False, **length), started(server, stream=True, **length)
    if frozen:
        server.signal_engine(signal.SIGSTOP)
    sent = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    server.wait_for(lambda: server.get("/health")[0] == 503, "readiness that is off", 5)
    refused = ask(server, chat(), path="/v1/chat/completions")
    assert (refused.status, refused.error["code"]) == (503, "server_shutting_down")
    if frozen:
        assert stream.wait(20).event_error["code"] == "server_shutting_down"
        assert whole.wait(20).error["code"] == "server_shutting_down"
        assert 9 < stream.ended_at - sent < 12
    else:
        assert stream.wait(20).events[-1] == "[DONE]"
        assert whole.wait(20).status == 200
    gone(server, 30)
    outcomes = sorted(record["outcome"] for record in records_conform(server, 3))
    assert outcomes == (["failed"] * 3 if frozen else ["completed", "completed", "failed"])


@pytest.mark.fresh(env={"LASTWORD_IDLE_TIMEOUT": "soon"})
def test_a_setting_that_cannot_be_used_stops_the_start(launched_vllm: VllmServer) -> None:
    """The process exits, and its log names the variable and what it held."""
    assert launched_vllm.process.wait(150) != 0
    assert "LASTWORD_IDLE_TIMEOUT='soon'" in launched_vllm.log_text()
