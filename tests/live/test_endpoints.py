"""The shim's own routes in real vLLM with keys: what they list, what they end, and what `ready` says of the engine."""

from __future__ import annotations

import http.client
import json
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.live.ahead import shared_server
from tests.live.asking import CHAT, GENERATED, LONG, MUCH, Asking, ask, chat, frozen, read
from tests.live.vllm_server import VllmServer
from tests.shim.wire import Answer, conforms

A, B = {"authorization": "Bearer key-of-a"}, {"authorization": "Bearer key-of-b"}


# Two keys, two sequences at once, and vLLM's routes that pause it and put it to sleep.
keyed = shared_server(
    "keyed",
    gently=False,
    args=("--api-key", "key-of-a", "key-of-b", "--max-num-seqs", "2"),
    env={"VLLM_SERVER_DEV_MODE": "1", "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": "1", "LASTWORD_STALL_AFTER": "1"},
)


@pytest.fixture(autouse=True)
def records_conform(keyed: VllmServer) -> Iterator[None]:
    """And no key is in a record or in the log."""
    keyed.step_back()
    keyed.wait_idle()
    before = len(keyed.records())
    yield
    for record in keyed.records()[before:]:
        conforms(record, "record")
    assert "key-of-" not in keyed.log_text().partition("non-default args")[0] + keyed.record_file.read_text("utf-8")


def call(server: VllmServer, method: str, path: str, headers: dict[str, str] | None = None) -> Answer:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        connection.request(method, path, headers=headers or {})
        return read(connection.getresponse())


def ready(server: VllmServer) -> tuple[int, str]:
    answer = call(server, "GET", "/lastword/ready")
    return answer.status, answer.body.decode()


def requests(server: VllmServer, headers: dict[str, str], query: str = "") -> list[dict[str, Any]]:
    answer = call(server, "GET", f"/lastword/requests{query}", headers)
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = json.loads(answer.body)["requests"]
    return found


def cancel(server: VllmServer, request_id: str, headers: dict[str, str]) -> Answer:
    return call(server, "POST", f"/lastword/requests/{request_id}/cancel", headers)


def begun(server: VllmServer, request_id: str, headers: dict[str, str], *, state: str, **more: Any) -> Asking:
    """A long completion of that caller's that has got to ``state``, and to the engine, which counts its tokens."""
    asking = Asking(server, {**LONG, **more}, headers={**headers, "x-request-id": request_id})

    def there() -> bool:
        found = requests(server, headers, f"?state={state}")
        return any(one["request_id"] == request_id and one["completion_tokens"] is not None for one in found)

    server.wait_for(there, f"request that is {state}", 20)
    return asking


def test_each_key_sees_its_own_and_nobody_elses_nor_can_end_it(keyed: VllmServer) -> None:
    """With the engine's own counts; a wrong key, or none, opens nothing."""
    stream = begun(keyed, "stream", A, state="generating", stream=True, max_tokens=MUCH - 1, min_tokens=0)
    whole = begun(keyed, "whole", B, state="generating")
    with frozen(keyed):
        (entry,) = requests(keyed, A)
        assert [one["request_id"] for one in requests(keyed, B)] == ["whole"]
        assert entry["completion_tokens"] > 0
        assert (entry["prompt_tokens"], entry["max_tokens"], entry["stream"]) == (5, MUCH - 1, True)
        assert entry["queue_time_ms"] is not None
        assert entry["since_last_token_ms"] is not None
        assert cancel(keyed, "whole", A).error["code"] == "not_found"
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "key-of-a"}):
            assert call(keyed, "GET", "/lastword/requests", headers).error["code"] == "unauthorized"
            assert cancel(keyed, "stream", headers).error["code"] == "unauthorized"
        assert cancel(keyed, "stream", A).status == 200
        assert stream.wait().event_error["code"] == "cancelled"
    whole.goes_on()
    assert cancel(keyed, "whole", B).status == 200
    assert whole.wait().error["code"] == "cancelled"


@pytest.mark.parametrize("stream", [True, False])
def test_a_cancel_stops_the_engine_whatever_it_is_doing(keyed: VllmServer, stream: bool) -> None:
    """Generating several choices, and waiting at the engine; of what was asked for it makes a part, and no more."""
    before = keyed.metric(GENERATED)
    running = begun(keyed, "run", A, state="generating", stream=stream, n=8)
    waiting = begun(keyed, "wait", A, state="queued", stream=stream)
    begun_with = 200 if stream else 499
    for name, asking, statuses in (("wait", waiting, {499, begun_with}), ("run", running, {begun_with})):
        answer = cancel(keyed, name, A)
        assert json.loads(answer.body) == {"request_id": name, "cancelled": 1}
        told = asking.wait()
        assert told.status in statuses  # a stream that waits has its status line after the hold
        assert (told.event_error if told.status == 200 else told.error)["code"] == "cancelled"
    keyed.wait_idle()
    made = keyed.metric(GENERATED)
    assert made - before < 8 * MUCH / 2
    time.sleep(0.3)
    assert keyed.metric(GENERATED) == made
    for name, least in (("run", 1), ("wait", 0)):
        record = keyed.wait_records(request_id=name, stream=stream)[-1]
        assert (record["state"], record["error_code"]) == ("cancelled", "cancelled")
        assert record["client_disconnected"] is False
        assert least <= record["completion_tokens"] <= made - before
    assert requests(keyed, A) == []


def test_an_engine_that_hangs_is_stalled_until_it_goes_on(keyed: VllmServer) -> None:
    """`/health` says 200 all the while; the hang can be looked at, and a request in it cancelled."""
    asking = begun(keyed, "stuck", A, state="generating", stream=True)
    other = begun(keyed, "goes-on", A, state="generating")
    keyed.wait_for(lambda: ready(keyed) == (200, "ready"), "ready", 5)
    with frozen(keyed):
        keyed.wait_for(lambda: ready(keyed) == (503, "stalled"), "stalled", 5)
        assert keyed.get("/health")[0] == 200
        assert all(one["since_last_token_ms"] > 900 for one in requests(keyed, A))
        assert cancel(keyed, "stuck", A).status == 200
        assert asking.wait(5).event_error["code"] == "cancelled"
        assert ready(keyed) == (503, "stalled")
    keyed.wait_for(lambda: ready(keyed) == (200, "ready"), "ready", 5)
    other.goes_on()
    other.leave()


@pytest.mark.parametrize("mode", ["abort", "keep"])
def test_a_paused_engine_is_not_ready_and_what_comes_waits(keyed: VllmServer, mode: str) -> None:
    """What was open is aborted and told so, or goes on afterwards; what is new waits as long as its caller does."""
    open_one = begun(keyed, "open", A, state="generating", stream=True)
    assert call(keyed, "POST", f"/pause?mode={mode}&clear_cache=false").status == 200
    assert ready(keyed) == (503, "paused")
    new = Asking(keyed, chat(), CHAT, headers=A)
    late = ask(keyed, chat(), path=CHAT, headers={**A, "request-timeout-ms": "300"})
    assert (late.status, late.error["code"]) == (504, "deadline_exceeded")
    if mode == "abort":
        assert open_one.wait(5).event_error["code"] == "generation_aborted"
    assert new.answer is None
    assert call(keyed, "POST", "/resume").status == 200
    assert ready(keyed) == (200, "ready")
    assert new.wait().status == 200
    if mode == "keep":
        open_one.goes_on()
        open_one.leave()


def test_a_sleeping_engine_refuses_at_once_until_it_is_wide_awake(keyed: VllmServer) -> None:
    """Bare vLLM takes the request and is silent; level 0 is a pause."""
    open_one = begun(keyed, "open", A, state="generating")
    assert call(keyed, "POST", "/sleep?level=1").status == 200
    assert open_one.wait(5).error["code"] == "generation_aborted"
    assert ready(keyed) == (503, "asleep")
    for stream in (True, False):
        began = time.monotonic()
        answer = ask(keyed, chat(stream=stream), path=CHAT, headers=A)
        assert (answer.status, answer.error["code"]) == (503, "model_loading")
        assert time.monotonic() - began < 2
    assert ask(keyed, chat(), path=CHAT).status == 401
    assert call(keyed, "POST", "/wake_up?tags=weights").status == 200
    assert ready(keyed) == (503, "asleep")
    assert call(keyed, "POST", "/wake_up").status == 200
    assert ready(keyed) == (200, "ready")
    assert ask(keyed, chat(), path=CHAT, headers=A).status == 200
    call(keyed, "POST", "/sleep?level=0")
    assert ready(keyed) == (503, "paused")
    call(keyed, "POST", "/wake_up?tags=scheduling")
    assert ready(keyed) == (200, "ready")


def test_a_dead_engine_is_dead(keyed: VllmServer) -> None:
    """Last of all, since it cannot be undone."""
    keyed.signal_engine(signal.SIGKILL)
    keyed.wait_for(lambda: ready(keyed) == (503, "dead"), "dead", 10)
    assert requests(keyed, A) == []
