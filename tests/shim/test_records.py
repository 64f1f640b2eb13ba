"""What a record says where it is easily wrong: times that are the client's, waste that nobody counted, what nobody saw."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests.shim.apps import DONE, EVENTS, WHOLE, Receive, Scope, Send, answering, chunk, read_body, streaming, stubborn
from tests.shim.wire import serving

from lastword_shim.engine import current
from lastword_shim.engine.embedded import EmbeddedEngine

pytestmark = pytest.mark.anyio
GOOD = chunk("a", finish="stop") + DONE


def deaf(*, then: float) -> Any:
    """An application that streams a token and then works on, whatever becomes of its client."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await send({"type": "http.response.body", "body": chunk("a"), "more_body": True})
        await asyncio.sleep(then)

    return app


async def test_the_total_time_is_the_clients_and_not_what_the_application_takes_to_stop() -> None:
    """It does not hear that it is over: the record comes later, and does not count that."""
    done = asyncio.Event()
    async with serving(stubborn(done.set), total_timeout=0.1) as server:
        assert (await server.ask({"model": "m"})).error["code"] == "generation_timeout"
        record = await server.one_record()
        await done.wait()
    assert 100 <= record["total_time_ms"] < 1000


async def test_the_total_time_of_a_client_that_left_ends_when_it_left() -> None:
    """How long the application went on is told apart."""
    async with serving(deaf(then=0.9)) as server:
        async with server.connect({"model": "m", "stream": True}) as (reader, _):
            await reader.readuntil(b"content")
        record = await server.one_record()
    assert record["total_time_ms"] < 800
    assert record["generation_time_after_disconnect_ms"] >= 400


async def test_content_that_nobody_counted_is_wasted_all_the_same() -> None:
    """REC-3: without an engine that counts, what was streamed tells; the counter of tokens stays."""
    before = REGISTRY.get_sample_value("lastword_wasted_tokens_total")
    async with serving(streaming(chunk("a"), 30)) as server:
        async with server.connect({"model": "m", "stream": True}) as (reader, _):
            await reader.readuntil(b"content")
        record = await server.one_record()
    assert (record["completion_tokens"], record["wasted"]) == (None, True)
    assert REGISTRY.get_sample_value("lastword_wasted_tokens_total") == before


async def test_nothing_is_wasted_where_nothing_was_seen() -> None:
    """The engine had not begun, as far as anybody can tell."""
    async with serving(streaming(30, GOOD)) as server:
        async with server.connect({"model": "m", "stream": True}):
            await asyncio.sleep(0.1)
        record = await server.one_record()
    assert (record["completion_tokens"], record["client_disconnected"], record["wasted"]) == (None, True, False)


@pytest.mark.parametrize(
    ("body", "settings", "path", "stream"),
    [
        ({"stream": True}, {}, "/v1/chat/completions", True),
        ({"model": "m"}, {}, "/v1/chat/completions", False),
        ({"stream": True}, {"max_body_bytes": 3}, "/v1/chat/completions", None),
        (b'{"stream": true', {}, "/v1/chat/completions", None),
        ({"stream": True}, {}, "/v1/embeddings", None),
    ],
)
async def test_stream_is_null_where_nobody_looked(
    body: Any, settings: dict[str, Any], path: str, stream: bool | None
) -> None:
    """Refused before the body was read, no JSON, or a route whose bodies are not read."""
    app = streaming(GOOD) if stream else answering(WHOLE)
    async with serving(app, **settings) as server:
        await server.ask(body, path=path)
        assert (await server.one_record())["stream"] is stream


@pytest.mark.parametrize(
    ("method", "path", "body", "operation"),
    [
        ("POST", "/v1/chat/completions", {}, "chat"),
        ("POST", "/v1/responses", {}, "chat"),
        ("POST", "/v1/completions", {}, "text_completion"),
        ("POST", "/v1/embeddings", {}, "embeddings"),
        ("POST", "/v1/rerank", {}, "rerank"),
        ("POST", "/v1/chat/completions", b"{", "chat"),
        ("POST", "/invocations", {"messages": []}, "chat"),
        ("POST", "/invocations", {"input": "x"}, "invocation"),
        ("POST", "/invocations", b"{", "invocation"),
        ("POST", "/tokenize", {}, None),
        ("GET", "/v1/models", b"", None),
        ("GET", "/v1/chat/completions", b"", None),
    ],
)
async def test_what_was_asked_of_the_engine_is_told_and_null_if_nothing_was(
    method: str, path: str, body: Any, operation: str | None
) -> None:
    """By OpenTelemetry's names; a refusal tells it too, and where only the body would tell the route does."""
    async with serving(answering(WHOLE)) as server:
        await server.ask(body, path=path, method=method)
        assert (await server.one_record())["operation"] == operation


@pytest.mark.parametrize("stream", [True, False])
async def test_what_the_answer_says_of_times_and_tokens_is_in_the_record(stream: bool) -> None:
    """vLLM's metrics and llama.cpp's timings, of a stream's last chunk or of a whole answer; usage was not asked for."""
    told: dict[str, Any] = {
        "metrics": {"queue_time_ms": 40.0, "generation_time_ms": 70.5},
        "timings": {"cache_n": 2, "prompt_n": 3, "predicted_n": 4, "predicted_ms": 9.0},
    }
    whole = {name: value for name, value in WHOLE.items() if name != "usage"}
    answer = streaming(chunk("a"), chunk(finish="stop", **told), DONE) if stream else answering({**whole, **told})

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        ticket = current()
        assert ticket is not None
        ticket.submitted()
        await answer(scope, receive, send)

    async with serving(app) as server:
        await server.ask({"model": "m", "stream": stream})
        record = await server.one_record()
    assert (record["prompt_tokens"], record["completion_tokens"], record["generation_time_ms"]) == (5, 4, 70.5)
    assert 40 <= record["queue_time_ms"] < 1000
    assert record["tokens_after_disconnect"] is None


async def test_an_engine_that_counts_and_has_made_nothing_says_nought() -> None:
    """Null would be that nobody knows; on the way in nobody does."""
    async with serving(EmbeddedEngine(pace=30)) as server:
        async with server.connect({"model": "embedded", "messages": [], "stream": True}) as (reader, _):
            await reader.readuntil(b"assistant")
        record = await server.one_record()
    told = ("completion_tokens", "tokens_at_disconnect", "tokens_after_disconnect", "disconnect_phase", "wasted")
    assert [record[name] for name in told] == [0, 0, 0, "queued", False]


async def test_tokens_after_the_disconnect_are_counted_and_no_constant() -> None:
    """An engine that takes a while to stop."""

    class Slow(EmbeddedEngine):
        async def _generate(self, scope: Any, receive: Any, send: Any) -> None:
            stop_after = len(scope["headers"][0][1])

            async def deaf() -> Any:
                message = await receive()
                if message["type"] == "http.disconnect":
                    left = self.generation_tokens
                    while self.generation_tokens < left + stop_after:
                        await asyncio.sleep(0)
                return message

            await super()._generate(scope, deaf, send)

    found: list[int] = []
    async with serving(Slow(pace=0.001)) as server:
        for number in (3, 9):
            body = {"model": "embedded", "messages": [], "stream": True, "max_tokens": 1000}
            async with server.connect(body, headers={"host": "x" * number}) as (reader, _):
                await reader.readuntil(b'content": " ')
            record = await server.one_record(len(found) + 1)
            found.append(record["tokens_after_disconnect"])
            assert record["completion_tokens"] == record["tokens_at_disconnect"] + found[-1]
    assert 3 <= found[0] < found[1]
