"""`POST /lastword/requests/{id}/cancel`: in every phase the client is told, the engine stops, and the record says so."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from typing import Any

import pytest
from tests.shim.apps import CHAT, WHOLE, answering, stubborn
from tests.shim.engines import Counting
from tests.shim.guarded import NOBODY, A, B, Guarded, cancel, generating, requests, until_state
from tests.shim.wire import Answer, Server, serving

from lastword_shim.endpoints import cancelling
from lastword_shim.exchange import tasks, telling

pytestmark = pytest.mark.anyio
QUEUED = {**A, "x-kind": "queued"}


def told(answer: Answer, *, begun: bool) -> None:
    """Status 499, or the stream's last event."""
    error = answer.event_error if begun else answer.error
    assert (answer.status, error["code"], error["category"]) == (200 if begun else 499, "cancelled", "cancelled")
    assert (error["retryable"], error["origin"]) == (False, "shim")
    assert answer.complete


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("phase", ["waits here", "waits at the engine", "generates"])
async def test_whatever_it_is_doing_it_ends(phase: str, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    """By the time of the answer the engine has stopped, the client has been told, and the record is written."""
    app = Guarded()
    headers = A if phase == "generates" else QUEUED
    bounds: dict[str, Any] = {"max_inflight": 1, "max_queued": 1} if phase == "waits here" else {}
    async with serving(app, engine=Counting(), **bounds) as server, contextlib.AsyncExitStack() as stack:
        if phase == "waits here":
            await stack.enter_async_context(generating(server, "first", B))
        state = "generating" if phase == "generates" else "queued"
        task = await stack.enter_async_context(generating(server, "x", headers, state=state, stream=stream))
        inside = app.inside
        with caplog.at_level(logging.INFO, "lastword_shim"):
            began = time.monotonic()
            answer = await cancel(server, "x")
            assert time.monotonic() - began < 0.5
        assert (answer.status, json.loads(answer.body)) == (200, {"request_id": "x", "cancelled": 1})
        assert answer.header("cache-control") == "no-store"
        assert app.inside == (inside if phase == "waits here" else 0)
        assert await requests(server) == []
        told(await task, begun=stream and phase == "generates")
        record = await server.one_record()
    assert (record["state"], record["outcome"], record["error_code"]) == ("cancelled", "cancelled", "cancelled")
    assert (record["client_disconnected"], record["wasted"], record["origin"]) == (False, False, "shim")
    tokens = record["completion_tokens"]
    assert (tokens or 0) > 0 if phase == "generates" else not tokens
    lines = [line for line in caplog.messages if "cancel" in line]
    assert lines == ["request_id=x attempt=1 cancelled through the cancel endpoint"]


async def test_its_place_is_free_for_the_next() -> None:
    """And whoever waited behind it moves up."""
    async with serving(Guarded(), engine=Counting(), max_inflight=1, max_queued=2) as server:
        async with generating(server, "1"), generating(server, "2", state="queued"):
            async with generating(server, "3", state="queued"):
                assert (await cancel(server, "2")).status == 200
                assert [one["position"] for one in await requests(server)] == [None, 1]
                assert (await cancel(server, "1")).status == 200
                await until_state(server, "3", "generating")


async def test_an_upload_is_ended_too() -> None:
    """Its client need not send the rest."""
    async with serving(answering(WHOLE)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nx-request-id: up\r\ncontent-length: 100\r\n\r\n{{".encode())
        await asyncio.sleep(0.1)
        assert (await cancel(server, "up", {})).status == 200
        assert (await reader.readline()).split()[1] == b"499"
        writer.close()
        assert (await server.one_record())["state"] == "cancelled"


async def until_blocked(server: Server, app: Guarded) -> None:
    """Every buffer on the way to the client is full."""
    (exchange,) = server.shim._core.register  # type: ignore[union-attr]
    tokens = -1
    async with asyncio.timeout(5):
        while not exchange.is_blocked or app.tokens != tokens:
            tokens = app.tokens
            await asyncio.sleep(0.1)


async def test_a_client_that_does_not_read_does_not_keep_the_engine_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine stops at once; the call answers although the client cannot be told."""
    monkeypatch.setattr(cancelling, "PATIENCE", 0.5)
    monkeypatch.setattr(telling, "SEND_PATIENCE", 1.5)
    app = Guarded(pace=0)
    async with serving(app, engine=Counting()) as server:
        headers = {**A, "x-kind": "large", "x-request-id": "x"}
        async with server.connect({"stream": True}, headers=headers) as (reader, _):
            await reader.readuntil(b"\r\n\r\n")
            await until_blocked(server, app)
            began = asyncio.get_running_loop().time()
            answer = await cancel(server, "x")
            assert (answer.status, json.loads(answer.body)["cancelled"]) == (200, 1)
            assert asyncio.get_running_loop().time() - began < 1
            assert app.inside == 0
            assert app.stopped_at - began < 0.3
            assert (await cancel(server, "x")).status == 200  # it has not ended yet, and is cancelled all the same
    record = await server.one_record()
    assert (record["state"], record["error_code"]) == ("cancelled", "cancelled")


async def test_an_application_that_does_not_stop_does_not_keep_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has been told, and the log says that it does not listen."""
    monkeypatch.setattr(tasks, "STOP_PATIENCE", 0.2)
    done = asyncio.Event()
    app = Guarded()
    app.generate = stubborn(done.set)
    async with serving(app) as server:
        task = asyncio.create_task(server.ask({}, headers={**A, "x-request-id": "x"}))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        assert (await cancel(server, "x")).status == 200
        assert time.monotonic() - began < 1
        told(await task, begun=False)
        await done.wait()


async def test_to_cancel_twice_is_to_cancel_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While it ends both are told so, and wait for it; afterwards there is nothing of that id any more."""
    monkeypatch.setattr(tasks, "STOP_PATIENCE", 5)
    app, stops = Guarded(), asyncio.Event()

    async def slow_to_stop(*asgi: Any) -> None:
        await app._generate(*asgi)
        await stops.wait()

    app.generate = slow_to_stop
    with caplog.at_level(logging.INFO, "lastword_shim"):
        async with serving(app, engine=Counting()) as server, generating(server, "x") as task:
            first = asyncio.create_task(cancel(server, "x"))
            told(await task, begun=True)
            second = asyncio.create_task(cancel(server, "x"))
            done, _ = await asyncio.wait({first, second}, timeout=0.2)
            assert not done
            assert server.records == []
            stops.set()
            for answer in (await first, await second):
                assert (answer.status, json.loads(answer.body)) == (200, {"request_id": "x", "cancelled": 1})
            assert (await cancel(server, "x")).error["code"] == "not_found"
            assert len(server.records) == 1
    assert sum("cancelled through the cancel endpoint" in line for line in caplog.messages) == 1


async def test_all_attempts_of_the_id_end_and_no_other_request() -> None:
    """A retry may run beside what it replaces; ids of which this is a part are others."""
    async with serving(Guarded(), engine=Counting()) as server:
        again = {**A, "x-request-attempt": "2"}
        async with generating(server, "x") as one, generating(server, "x", again) as two, generating(server, "x1"):
            assert json.loads((await cancel(server, "x")).body) == {"request_id": "x", "cancelled": 2}
            for task in (one, two):
                told(await task, begun=True)
            assert [entry["request_id"] for entry in await requests(server)] == ["x1"]
        assert sorted(record["attempt"] for record in server.records if record["error_code"] == "cancelled") == [1, 2]


async def test_another_keys_request_is_as_if_there_were_none() -> None:
    """The same answer, byte for byte and in the same time, and the request goes on; even where both use one id."""
    app = Guarded()
    async with serving(app, engine=Counting()) as server:
        async with (
            generating(server, "secret", B) as task,
            generating(server, "same", A),
            generating(server, "same", B),
        ):
            assert json.loads((await cancel(server, "same")).body)["cancelled"] == 1
            assert [one["request_id"] for one in await requests(server, B)] == ["secret", "same"]
            times: dict[str, list[float]] = {"secret": [], "absent": []}
            bodies = set()
            for _ in range(40):
                for name, seen in times.items():
                    began = time.perf_counter()
                    answer = await cancel(server, name, {**A, "x-request-id": "fixed"})
                    seen.append(time.perf_counter() - began)
                    assert answer.status == 404
                    bodies.add((answer.body, tuple(name for name, _ in answer.headers)))
            assert len(bodies) == 1
            assert abs(min(times["secret"]) - min(times["absent"])) < 0.001  # the least disturbed of each
            assert (await cancel(server, "secret", NOBODY)).status == 401
            assert not task.done()


async def test_a_request_is_still_cancelled_while_the_server_drains() -> None:
    """Draining refuses what is new only."""
    async with serving(Guarded(), engine=Counting()) as server, generating(server, "x") as task:
        draining = asyncio.create_task(server.shim.drain(10))
        await asyncio.sleep(0.05)
        assert [one["request_id"] for one in await requests(server)] == ["x"]
        assert (await cancel(server, "x")).status == 200
        told(await task, begun=True)
        await asyncio.wait_for(draining, 1)


@pytest.mark.parametrize("name", ["a:b.c-d_e", "0", "x" * 128, "-", "..", "%41"])
async def test_ids_as_the_contract_has_them(name: str) -> None:
    """Letters, digits and four marks, percent-encoded or not."""
    async with serving(Guarded(), engine=Counting()) as server:
        async with generating(server, name.replace("%41", "A")):
            assert (await cancel(server, name)).status == 200


@pytest.mark.parametrize(
    "name",
    ["a%20b", "%2Fetc%2Fpasswd", "a/b", "a%00b", "a%0d%0ab", "x" * 129, "", "%C3%A9", "%ff", "<script>", "a%25b"],
)
async def test_ids_that_nothing_can_have_are_refused(name: str) -> None:
    """With a message that repeats nothing of them; a stranger learns not even that."""
    async with serving(Guarded()) as server:
        answer = await cancel(server, name)
        assert (answer.status, answer.error["code"], answer.error["param"]) == (
            400,
            "invalid_request_error",
            "request_id",
        )
        assert (await cancel(server, name, {})).status == 401


async def test_what_has_ended_while_the_call_came_is_not_found() -> None:
    """A good end stays a good end."""
    app = Guarded()
    async with serving(app, engine=Counting()) as server, generating(server, "x") as task:
        app.go.set()
        answer = await task
        assert "[DONE]" in answer.events
        assert (await cancel(server, "x")).status == 404
        assert (await server.one_record())["outcome"] == "completed"


async def test_the_call_needs_no_body_and_reads_none() -> None:
    """Whatever is sent with it."""
    async with serving(Guarded(), engine=Counting()) as server:
        for body in (b"", b"{", b"x" * 100_000):
            async with generating(server, "x"):
                path = "/lastword/requests/x/cancel"
                answer: Any = await server.ask(body, path=path, headers=A)
                assert answer.status == 200
