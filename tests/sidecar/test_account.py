"""What the sidecar knows of a request, and tells: as much as the wire shows."""

from __future__ import annotations

import pytest
from tests.sidecar.wire import WHOLE, Call, plain, sidecar, upstream

pytestmark = pytest.mark.anyio


async def test_a_judged_answer_leaves_its_record() -> None:
    """Times on the wire, tokens by the usage and the engine's own clock, and nothing that nobody knows."""
    usage = b'"usage": {"prompt_tokens": 7, "completion_tokens": 2}, '
    metrics = b'"metrics": {"queue_time_ms": 1500.0, "generation_time_ms": 40}'

    async def handler(call: Call) -> None:
        await call.send(plain(WHOLE[:-1] + b"," + usage + metrics + b"}"))

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        assert (await server.ask({"model": "m"})).status == 200
        record = await server.one_record()
    assert (record["state"], record["prompt_tokens"], record["completion_tokens"]) == ("completed", 7, 2)
    assert 1500 <= record["queue_time_ms"] < 2500
    assert record["generation_time_ms"] == 40


async def test_a_refusal_of_the_upstream_is_recorded_as_one() -> None:
    async def handler(call: Call) -> None:
        await call.send(plain(b'{"error": {"message": "n must be at least 1", "code": 400}}', status=400))

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        assert (await server.ask({"model": "m"})).error["code"] == "invalid_request_error"
        record = await server.one_record()
    assert (record["state"], record["completion_tokens"]) == ("rejected", None)


async def test_vllms_words_for_a_prompt_that_does_not_fit_are_put_right() -> None:
    """As in vLLM itself: they name max_tokens as if it were 0."""

    async def handler(call: Call) -> None:
        await call.send(
            plain(b'{"error": {"message": "max_tokens must be at least 1, got 0.", "code": 400}}', status=400)
        )

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        error = (await server.ask({"model": "m", "max_tokens": 5})).error
    assert error["code"] == "context_length_exceeded"
