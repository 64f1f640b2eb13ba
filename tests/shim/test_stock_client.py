"""What the shim's answers make a stock openai client do, counted by the server."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from tests.shim.apps import DONE, ERROR, WHOLE, App, Receive, Scope, Send, answering, chunk, streaming
from tests.shim.wire import Server, serving

pytestmark = pytest.mark.anyio
DEAD = json.dumps(
    {"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}}
)
BUSY = json.dumps({"error": {"message": "request queue is full", "type": "Service Unavailable", "code": 503}})


class Counted:
    """Answers with one application after the other, the last one for ever."""

    def __init__(self, *apps: App) -> None:
        self.apps = list(apps)
        self.count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.count += 1
        app = self.apps.pop(0) if len(self.apps) > 1 else self.apps[0]
        await app(scope, receive, send)


def stock(server: Server) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="k", max_retries=2)


async def ask(client: openai.AsyncOpenAI, **options: Any) -> Any:
    return await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], **options)


@pytest.mark.parametrize(
    ("app", "raises", "code", "requests"),
    [
        (answering(b'{"error":"Unauthorized"}', status=401), openai.AuthenticationError, "unauthorized", 1),
        (answering(b"{}", status=422), openai.BadRequestError, "invalid_request_error", 1),
        (answering(b"{}", status=409), openai.BadRequestError, "invalid_request_error", 1),
        (streaming(ERROR, DONE), openai.BadRequestError, "invalid_request_error", 1),
        (answering(DEAD.encode(), status=500), openai.InternalServerError, "engine_unavailable", 2),
        (answering(BUSY.encode(), status=503), openai.InternalServerError, "queue_overloaded", 3),
    ],
)
async def test_errors_are_typed_and_retried_as_the_registry_says(
    app: App, raises: type[openai.APIStatusError], code: str, requests: int
) -> None:
    """Fixable ones never; a request that may have killed the engine once; the others as often as the client cares."""
    counted = Counted(app)
    async with serving(counted) as server, stock(server) as client:
        with pytest.raises(raises) as caught:
            await ask(client, stream=True)
    assert (caught.value.code, counted.count) == (code, requests)


async def test_what_will_pass_is_tried_again_and_passes() -> None:
    """After the hint, with the same request id when the caller gives one."""
    counted = Counted(answering(BUSY.encode(), status=503), answering(WHOLE))
    async with serving(counted) as server, stock(server) as client:
        answer = await ask(client, extra_headers={"x-request-id": "same-1"})
        assert [record["attempt"] for record in server.records] == [1, 2]
        assert {record["request_id"] for record in server.records} == {"same-1"}
    assert (answer.choices[0].message.content, counted.count) == ("a", 2)


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([chunk("a"), DONE], "generation_aborted"),
        ([chunk("a")], "generation_aborted"),
        ([chunk("a"), ERROR, DONE], "invalid_request_error"),
        ([chunk("a"), RuntimeError("no")], "internal_server_error"),
    ],
)
async def test_a_stream_that_fails_later_raises_and_is_not_sent_again(steps: list[Any], code: str) -> None:
    """Without the shim the first two end the loop in silence."""
    counted = Counted(streaming(*steps))
    seen = []
    async with serving(counted) as server, stock(server) as client:
        stream = await ask(client, stream=True)
        with pytest.raises(openai.APIError) as caught:
            async for part in stream:
                seen.append(part.choices[0].delta.content)  # noqa: PERF401 (what came before the error counts)
        await stream.close()
    assert (caught.value.code, counted.count, seen) == (code, 1, ["a"])
