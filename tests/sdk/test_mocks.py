"""Users mock HTTP with respx, and go on doing so: the clients' transport is one that it knows."""

from __future__ import annotations

import asyncio

import httpx
import pytest
import respx

from lastword import AsyncClient, Client, ConnectionFailed, RetryPolicy

URL = "http://engine.test/v1"
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
WHOLE = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [CHOICE]}
STREAM = 'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
QUICK = RetryPolicy(max_attempts=2, base_delay=0.01)


def test_a_mocked_refusal_is_retried() -> None:
    """The mock counts what the client sends, and both answers are read as from a server."""
    busy = httpx.Response(503, json={"error": {"code": "queue_overloaded", "message": "busy"}})
    with respx.mock, Client(base_url=URL, retry=QUICK) as client:
        route = respx.post(f"{URL}/chat/completions").mock(side_effect=[busy, httpx.Response(200, json=WHOLE)])
        done = client.chat.completions.create(model="m", messages=[])
    assert (done.choices[0].message.content, route.call_count) == ("hi", 2)


def test_a_mocked_stream_is_complete_for_both_clients() -> None:
    """With its content type, as a server would send it."""

    async def read() -> str:
        async with AsyncClient(base_url=URL) as client:
            stream = await client.chat.completions.create(model="m", messages=[], stream=True)
            async for _ in stream:
                pass
        return stream.text

    with respx.mock, Client(base_url=URL) as client:
        respx.post(f"{URL}/chat/completions").respond(text=STREAM, content_type="text/event-stream")
        stream = client.chat.completions.create(model="m", messages=[], stream=True)
        list(stream)
        assert (stream.text, str(stream.outcome)) == ("hi", "completed")
        assert asyncio.run(read()) == "hi"


def test_a_mocked_failure_has_its_code() -> None:
    """Exceptions of httpx that a mock raises go through the same table as real ones."""
    with respx.mock, Client(base_url=URL, retry=QUICK) as client:
        respx.get(f"{URL}/models").mock(side_effect=httpx.ConnectError("refused"))
        with pytest.raises(ConnectionFailed) as caught:
            client.models.list()
    assert len(caught.value.attempts) == 2
