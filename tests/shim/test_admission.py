"""Who gets in, and what it costs to keep somebody out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.shim.apps import CHAT, WHOLE, Receive, Scope, Send, Slow, answering, answering_now, read_body
from tests.shim.engines import Counting
from tests.shim.wire import Answer, Server, serving

from lastword_shim.admission.refusals import declared_length
from lastword_shim.engine import Refusal, current

pytestmark = pytest.mark.anyio


async def gate_keeper(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuses strangers before it reads anything, as vLLM's authentication does."""
    if dict(scope["headers"]).get(b"authorization") != b"Bearer k":
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b'{"error":"Unauthorized"}'})
        return
    await answering(WHOLE)(scope, receive, send)


async def test_a_stranger_learns_nothing_and_costs_nothing() -> None:
    """401 whatever the state: too large, malformed, with a bad deadline, or while the server is full or stops."""
    huge = {"content-length": "999999999", "request-timeout-ms": "x"}
    async with serving(gate_keeper, max_body_bytes=10, max_inflight=1) as server:
        for headers in ({}, huge):
            answer = await server.ask(b"{not json", headers=headers)
            assert (answer.status, answer.error["code"]) == (401, "unauthorized")
        assert (await server.ask(b"{not json", headers={**huge, "authorization": "Bearer k"})).status == 400
        await server.shim.drain(0)
        assert (await server.ask(b"{}")).error["code"] == "unauthorized"
        assert (await server.ask(b"{}", headers={"authorization": "Bearer k"})).error["code"] == "server_shutting_down"
        assert {record["state"] for record in server.records} == {"rejected"}


async def test_a_body_that_is_too_large_is_refused_by_its_head_or_on_its_way() -> None:
    """413 with the limit, whether its length was declared or not; the rest is not read."""
    async with serving(answering(WHOLE), max_body_bytes=100) as server:
        declared = await server.ask({"prompt": "x" * 200})
        assert (declared.status, declared.error["code"]) == (413, "request_too_large")
        assert declared.error["details"] == {"max_body_bytes": 100}
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"ff\r\n" + b"x" * 255 + b"\r\n")
        assert (await reader.readline()).split()[1] == b"413"
        writer.close()
        assert (await server.ask({"a": "x"})).status == 200


@pytest.mark.parametrize("body", [b"{", b"", b'{"a": "\xff"}', b'{"a": 1' + b"0" * 5000 + b"}", b"nul"])
async def test_what_is_no_json_is_refused_here(body: bytes) -> None:
    """With a message of ours, which repeats nothing of the body."""
    async with serving(answering(WHOLE)) as server:
        answer = await server.ask(body)
    assert (answer.status, answer.error["code"]) == (400, "invalid_request_error")
    assert "not valid JSON" in answer.error["message"]


@pytest.mark.parametrize(
    "body", [b"[1]", b'"x"', b"null", b'{"n": "many", "prompt": {}, "max_tokens": -1, "model": 5}']
)
async def test_json_of_another_shape_is_the_engines_to_judge(body: bytes) -> None:
    """The shim reads what it needs and takes nothing for granted."""
    async with serving(answering(WHOLE)) as server:
        assert (await server.ask(body)).status == 200


async def start(server: Server, count: int) -> list[asyncio.Task[Answer]]:
    tasks = []
    for _ in range(count):
        tasks.append(asyncio.create_task(server.ask({"model": "m"})))
        await asyncio.sleep(0.03)
    return tasks


@pytest.mark.parametrize("status", [503, 429])
async def test_more_than_fit_wait_and_more_than_may_wait_are_refused(status: int) -> None:
    """Two at work, two waiting, the fifth gets a hint when to come again; then all are served, two at a time."""
    app = Slow()
    async with serving(app, max_inflight=2, max_queued=2, overload_status=status) as server:
        tasks = await start(server, 4)
        refused = await server.ask({"model": "m"})
        assert (refused.status, refused.error["code"]) == (status, "queue_overloaded")
        assert refused.header("x-should-retry") == "true"
        app.go.set()
        assert [task.result().status for task in (await asyncio.wait(tasks))[0]] == [200] * 4
        assert app.most == 2
        assert (await server.ask({"model": "m"})).status == 200
        states = [record["state"] for record in server.records]
    assert sorted(states) == ["completed"] * 5 + ["rejected"]


async def test_the_queue_has_a_limit_in_time_and_those_who_leave_make_room() -> None:
    """A waiting request whose client leaves, or whose time is up, gives its place in the line back."""
    app = Slow()
    async with serving(app, max_inflight=1, max_queued=1, queue_timeout=0.5) as server:
        (first,) = await start(server, 1)
        async with server.connect({"model": "m"}):
            await asyncio.sleep(0.1)
            assert (await server.ask({"model": "m"})).error["code"] == "queue_overloaded"
        await asyncio.sleep(0.05)
        waited = await server.ask({"model": "m"})
        assert (waited.status, waited.error["code"]) == (503, "queue_timeout")
        (second,) = await start(server, 1)
        app.go.set()
        assert {(await first).status, (await second).status} == {200}
        by_code = {record["error_code"]: record for record in server.records}
    assert by_code["client_disconnected"]["disconnect_phase"] == "queued"
    assert by_code["queue_timeout"]["state"] == "rejected"


async def test_a_queue_limit_alone_counts_those_without_a_token() -> None:
    """Without `max_inflight` the queue is the engine's."""
    app = Slow()
    async with serving(app, engine=Counting(), max_queued=2) as server:
        tasks = await start(server, 2)
        assert (await server.ask({"model": "m"})).error["code"] == "queue_overloaded"
        app.go.set()
        await asyncio.wait(tasks)


def tokenizing(limit: int) -> Any:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        ticket = current()
        assert ticket is not None
        try:
            ticket.admit(len(body), max_model_len=limit)
        except Refusal:
            raise ValueError("as an engine would") from None
        ticket.effective_max_tokens = min(ticket.max_tokens or limit, limit - len(body))
        await answering_now(send)

    return app


async def test_a_request_that_does_not_fit_the_context_is_refused_with_the_numbers() -> None:
    """Prompt and explicit max_tokens; the caller is told what would fit."""
    async with serving(tokenizing(100)) as server:
        answer = await server.ask(b'{"max_tokens": 90}')
        record = await server.one_record()
        assert (await server.ask(b'{"max_tokens": 80}')).status == 200
        assert (await server.ask(b'{"max_tokens": null}')).status == 200
    assert (answer.status, answer.error["code"], answer.error["param"]) == (
        400,
        "context_length_exceeded",
        "max_tokens",
    )
    assert answer.error["details"] == {
        "prompt_tokens": 18,
        "max_tokens": 90,
        "requested_tokens": 108,
        "max_model_len": 100,
        "available_tokens": 82,
    }
    assert (record["state"], record["prompt_tokens"], record["max_tokens"]) == ("rejected", 18, 90)


async def test_the_clamp_policy_lets_it_in_and_tells_the_effective_value() -> None:
    """`x-lastword-effective-max-tokens`, only where something was cut."""
    async with serving(tokenizing(100), context_policy="clamp") as server:
        cut = await server.ask(b'{"max_tokens": 90}')
        assert (cut.status, cut.header("x-lastword-effective-max-tokens")) == (200, "82")
        assert (await server.ask(b'{"max_tokens": 9}')).header("x-lastword-effective-max-tokens") is None
        assert server.records[0]["effective_max_tokens"] == 82


def test_a_length_of_any_number_of_digits_is_read() -> None:
    """Not every server stops it before, and Python reads no more than 4300."""
    assert declared_length([(b"content-length", b"9" * 5000)]) > 10**18
    assert declared_length([(b"content-length", b"42")]) == 42
    assert declared_length([(b"content-length", b"-1")]) == declared_length([]) == 0


@pytest.mark.parametrize("digits", [17, 400, 4300])
async def test_a_number_without_end_is_as_much_as_can_be_asked_for(digits: int) -> None:
    """It is refused like any that does not fit, and neither the answer nor the record grows with it."""
    async with serving(tokenizing(100)) as server:
        answer = await server.ask(b'{"max_tokens": ' + b"9" * digits + b"}")
        record = await server.one_record()
    assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
    assert answer.error["details"]["max_tokens"] == record["max_tokens"] == 2**53 - 1
    assert len(answer.body) < 1000


async def test_half_a_character_in_a_models_name_is_no_name() -> None:
    """JSON may have it; records, traces and those who read them may not."""
    async with serving(tokenizing(100)) as server:
        await server.ask(b'{"model": "a\\ud800b"}')
        assert (await server.one_record())["model"] == "a?b"


@pytest.mark.parametrize(
    ("path", "body", "asked"),
    [
        (CHAT, b'{"max_tokens": 7, "max_completion_tokens": 5}', 5),
        (CHAT, b'{"max_tokens": 7, "max_completion_tokens": null}', 7),
        ("/v1/completions", b'{"max_completion_tokens": 5}', None),
        ("/v1/responses", b'{"max_output_tokens": 6}', 6),
        ("/invocations", b'{"messages": [], "max_tokens": 4}', 4),
        ("/v1/embeddings", b'{"max_tokens": 4}', None),
    ],
)
async def test_max_tokens_is_what_the_endpoint_calls_it(path: str, body: bytes, asked: int | None) -> None:
    """Only the explicit value counts."""
    async with serving(tokenizing(10_000)) as server:
        await server.ask(body, path=path)
        assert (await server.one_record())["max_tokens"] == asked
