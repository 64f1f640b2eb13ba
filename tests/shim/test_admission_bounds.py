"""Bounds on real sockets: bursts, prompt tokens, the routes that count, and what those are told who are turned away."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.shim.apps import CHAT, GOOD, JSON, WHOLE, Receive, Scope, Send, Slow, answering, read_body, streaming
from tests.shim.engines import Counting
from tests.shim.wire import Answer, Server, serving

from lastword_shim.engine import Refusal, current

pytestmark = pytest.mark.anyio
TEXT = {"model": "m", "messages": [{"role": "user", "content": "x" * 400}]}


async def until(condition: Callable[[], object], what: str) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.002)
    assert condition(), what


async def asked(server: Server, app: Slow, inside: int, **options: Any) -> asyncio.Task[Answer]:
    """A request that is at the application once this returns."""
    task = asyncio.create_task(server.ask(**{"body": TEXT, **options}))
    await until(lambda: app.inside == inside, "a request inside")
    return task


def waiting(server: Server) -> int:
    assert server.shim._core is not None
    return server.shim._core.places.waiting


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
async def test_of_a_burst_exactly_those_are_refused_that_do_not_fit(path: str) -> None:
    """Twenty at once against eight at work and eight that wait: four, and never more than eight inside."""
    app = Slow()
    async with serving(app, max_inflight=8, max_queued=8) as server:
        tasks = [asyncio.create_task(server.ask(TEXT, path=path)) for _ in range(20)]
        await until(lambda: len(server.records) == 4, "four records")
        app.go.set()
        answers = await asyncio.gather(*tasks)
        assert Counter(answer.status for answer in answers) == {200: 16, 503: 4}
        assert app.most == 8
    for refused in (answer.error for answer in answers if answer.status == 503):
        assert refused["details"]["waiting"] == refused["details"]["max_queued"] == 8
        assert 500 <= refused["retry_after_ms"] <= 1500  # nothing is measured yet
    assert len({answer.error["retry_after_ms"] for answer in answers if answer.status == 503}) > 1


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/score", "/rerank", "/pooling", "/v1/audio/transcriptions"])
async def test_every_route_that_makes_the_engine_work_takes_a_place(path: str) -> None:
    """One at work, and the next one is refused."""
    app = Slow()
    async with serving(app, max_inflight=1) as server:
        first = await asked(server, app, 1, path=path)
        assert (await server.ask(TEXT, path=path)).error["code"] == "queue_overloaded"
        app.go.set()
        assert (await first).status == 200


async def test_work_that_makes_no_tokens_has_the_timers_that_need_none() -> None:
    """The queue's while it waits here, and the one for the whole; those that look at tokens see none."""
    app, path = Slow(), "/v1/embeddings"
    limits: dict[str, Any] = {
        "queue_timeout": 0.2,
        "total_timeout": 0.5,
        "first_token_timeout": 0.1,
        "idle_timeout": 0.1,
    }
    async with serving(app, max_inflight=1, max_queued=1, **limits) as server:
        first = await asked(server, app, 1, path=path)
        assert (await server.ask(TEXT, path=path)).error["code"] == "queue_timeout"
        assert (await first).error["code"] == "generation_timeout"


async def test_what_is_no_work_takes_no_place() -> None:
    """Lists of models and tokenizers answer while the server is full."""
    app = Slow()
    async with serving(app, max_inflight=1) as server:
        first = await asked(server, app, 1)
        other = await asked(server, app, 2, path="/tokenize")
        app.go.set()
        assert {(await first).status, (await other).status} == {200}


class Tokenizing(Slow):
    """Tells the true length of each prompt, as vLLM's adapter does, before it takes the request."""

    def __init__(self, tokens: Callable[[dict[str, Any]], list[int]]) -> None:
        super().__init__()
        self.tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        ticket = current()
        assert ticket is not None
        try:
            for length in self.tokens(json.loads(body)):
                ticket.admit(length, max_model_len=100_000)
        except Refusal:
            raise ValueError("as an engine would") from None
        given = iter([{"type": "http.request", "body": body}])

        async def again() -> Any:
            return next(given, None) or await receive()

        await super().__call__(scope, again, send)


async def test_prompt_tokens_are_a_bound_by_the_true_length() -> None:
    """Estimated until the engine tells; then corrected, down for the next, and up to a refusal before the engine has it."""
    app = Tokenizing(lambda body: body["lengths"])
    body = {"pad": "x" * 100, "lengths": [10]}
    async with serving(app, max_inflight_tokens=100, max_queued=1) as server:
        first = await asked(server, app, 1, body=body)
        second = await asked(server, app, 2, body={**body, "lengths": [20, 30]})
        assert server.shim._core is not None
        await until(lambda: server.shim._core.places._inside_tokens == 60, "60 tokens")  # type: ignore[union-attr]
        third = await server.ask({**body, "lengths": [30, 20]})
        assert (third.status, third.error["code"]) == (503, "queue_overloaded")
        details = third.error["details"]
        assert details == {
            "inflight": 2, "waiting": 0, "max_queued": 1, "prompt_tokens": 50,
            "inflight_tokens": 60, "max_inflight_tokens": 100,
        }  # fmt: skip
        record = next(record for record in server.records if record["error_code"] == "queue_overloaded")
        assert (record["state"], record["prompt_tokens"]) == ("rejected", 50)
        fourth = await asked(server, app, 3, body={**body, "lengths": [40]})
        app.go.set()
        assert {(await task).status for task in (first, second, fourth)} == {200}
        assert server.shim._core.places._inside_tokens == 0


async def test_prompts_of_one_request_are_told_one_after_the_other() -> None:
    """What the first of them needs less than was reserved for all is not given away before the others have told."""
    app = Tokenizing(lambda body: body["lengths"])
    held = asyncio.Event()

    async def holding(scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        if b"several" in body:
            await held.wait()  # it is at the engine, which has not told anything yet
        given = iter([{"type": "http.request", "body": body}])

        async def again() -> Any:
            return next(given, None) or await receive()

        await app(scope, again, send)

    async with serving(holding, max_inflight_tokens=100, max_queued=1) as server:
        first = await asked(server, app, 1, body={"lengths": [40]})
        several = asyncio.create_task(server.ask({"lengths": [20, 30], "several": "x" * 190}))  # some 60 by its size
        assert server.shim._core is not None
        places = server.shim._core.places
        await until(lambda: places.inside == 2, "two inside")
        behind = asyncio.create_task(
            server.ask({"lengths": [30], "pad": "x" * 90})
        )  # some 30: would fit beside 40 and 20
        await until(lambda: places.waiting == 1, "one in line")
        held.set()
        await until(lambda: places._inside_tokens == 90, "40 and 50")
        assert places.waiting == 1
        app.go.set()
        assert [(await task).status for task in (first, several, behind)] == [200] * 3


async def test_a_request_larger_than_the_bound_runs_alone() -> None:
    """And what comes meanwhile waits."""
    app = Tokenizing(lambda body: [body["length"]])
    async with serving(app, max_inflight_tokens=100, max_queued=2) as server:
        first = await asked(server, app, 1, body={"length": 5000})
        second = asyncio.create_task(server.ask({"length": 10}))
        await until(lambda: waiting(server) == 1, "one in line")
        assert app.inside == 1
        app.go.set()
        assert {(await first).status, (await second).status} == {200}
        assert app.most == 1


async def test_the_engines_queue_has_a_bound_in_tokens_too() -> None:
    """Those without a token yet; one that has begun makes room."""
    app = Tokenizing(lambda body: [body["length"]])
    async with serving(app, engine=Counting(), max_queued_tokens=100) as server:
        first = await asked(server, app, 1, body={"length": 60})
        refused = await server.ask({"length": 60})
        assert refused.error["code"] == "queue_overloaded"
        assert refused.error["details"]["prompt_tokens"] == 60
        server.shim._core.register._open.copy().pop()._ticket.produced(1)  # type: ignore[union-attr]
        second = await asked(server, app, 2, body={"length": 60})
        app.go.set()
        assert {(await first).status, (await second).status} == {200}


async def test_a_picture_does_not_keep_everybody_out() -> None:
    """Two megabytes of base64 beside others, where the bound is some thousand tokens."""
    app = Slow()
    url = f"data:image/png;base64,{base64.b64encode(b'x' * 2_000_000).decode()}"
    picture = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}
    async with serving(app, max_inflight_tokens=3000) as server:
        first = await asked(server, app, 1)
        second = await asked(server, app, 2, body=picture)
        app.go.set()
        assert {(await first).status, (await second).status} == {200}


async def test_estimates_are_learned_from_the_usage_of_answers() -> None:
    """A tokenizer with a token a byte, behind an engine that tells nothing else."""
    usage = {"prompt_tokens": 400, "completion_tokens": 1}
    async with serving(answering({**WHOLE, "usage": usage}), max_inflight_tokens=10_000) as server:
        assert server.shim._core is not None
        for _ in range(40):
            await server.ask({"model": "m", "prompt": "x" * 369})  # 400 bytes
        assert server.shim._core.rate._tokens / server.shim._core.rate._bytes == pytest.approx(1.0, rel=0.1)


async def test_the_hint_is_the_measured_pace_times_the_place_in_line() -> None:
    """One place, some 100 ms each, two that wait: the next one's turn would be in 300 ms."""
    async with serving(streaming(0.1, GOOD), max_inflight=1, max_queued=2) as server:
        answers = []

        async def client() -> None:
            for _ in range(6):
                answers.append(await server.ask())  # noqa: PERF401 (the clients share the list)

        clients = [asyncio.create_task(client()) for _ in range(3)]
        await until(lambda: len(server.records) == 9, "nine answers")
        await until(lambda: waiting(server) == 2, "two in line")
        refused = await server.ask()
        await asyncio.gather(*clients)
    assert refused.error["details"]["estimated_wait_ms"] == pytest.approx(330, rel=0.6)
    estimate = refused.error["details"]["estimated_wait_ms"]
    assert 0.5 * estimate <= refused.error["retry_after_ms"] <= 1.5 * estimate + 1
    assert [answer.status for answer in answers] == [200] * 18


async def test_the_engines_own_refusals_are_told_alike() -> None:
    """Under the status that is set for overload, with a hint, and without its words."""
    busy = {"error": {"message": "The engine is currently busy and cannot accept new requests.", "code": 503}}
    async with serving(answering(busy, status=503), overload_status=429) as server:
        answers = [await server.ask(TEXT) for _ in range(4)]
    assert [(answer.status, answer.error["code"]) for answer in answers] == [(429, "queue_overloaded")] * 4
    hints = [answer.error["retry_after_ms"] for answer in answers]
    assert all(500 <= hint <= 1500 for hint in hints)
    assert len(set(hints)) > 1
    own = [*JSON, (b"retry-after", b"7")]
    async with serving(answering(busy, status=503, headers=own)) as server:
        assert (await server.ask(TEXT)).error["retry_after_ms"] == 7000


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/tokenize"])
async def test_a_head_that_is_too_large_is_refused_before_anybody_reads_it(path: str) -> None:
    """Headers, path and query together; the application is not asked, and nothing of the body is read."""

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the application was asked")

    async with serving(never, max_header_bytes=600) as server:
        for target, field in ((path, "y" * 600), (f"{path}?{'q' * 600}", ""), (path + "/x" * 300, "")):
            answer = await server.ask(TEXT, path=target, headers={"x-a": field})
            assert (answer.status, answer.error["code"]) == (413, "request_too_large")
            details = answer.error["details"]
            assert 600 < details["header_bytes"] < 900
            assert details["max_header_bytes"] == 600
        assert {record["state"] for record in server.records} == {"rejected"}
    async with serving(answering(WHOLE)) as server:
        assert (await server.ask(TEXT, headers={"x-a": "y" * 20_000})).status == 200


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
async def test_a_body_that_is_nested_too_deep_is_refused_with_the_number(path: str) -> None:
    """Before any parser recurses; a schema of some levels is fine."""
    async with serving(answering(WHOLE)) as server:
        for body in (b"[" * 100_000, b'{"a":' * 200 + b"1" + b"}" * 200):
            answer = await server.ask(body, path=path)
            assert (answer.status, answer.error["code"]) == (400, "invalid_request_error")
            assert answer.error["details"] == {"max_depth": 128}
        assert (await server.ask(b'{"a":' * 60 + b"1" + b"}" * 60, path=path)).status == 200


async def test_a_queue_that_nobody_may_wait_in_tells_so_before_the_body_is_sent() -> None:
    """Who is full does not read what it will refuse."""
    app = Slow()
    async with serving(app, max_inflight=1) as server:
        first = await asked(server, app, 1)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n")
        assert (await asyncio.wait_for(reader.readline(), 3)).split()[1] == b"503"
        writer.close()
        app.go.set()
        assert (await first).status == 200
