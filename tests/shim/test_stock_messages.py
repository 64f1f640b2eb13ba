"""What a stock anthropic client makes of the Messages endpoint's endings."""

from __future__ import annotations

import anthropic
import pytest
from anthropic.types import MessageParam
from tests.shim.apps import App, Receive, Scope, Send, answering, streaming
from tests.shim.events import BLOCK, BLOCK_STOP, MESSAGE_START, MESSAGE_STOP, message_delta
from tests.shim.test_messages import BEGUN, ERROR, GOOD, answer_of
from tests.shim.wire import Server, serving

pytestmark = pytest.mark.anyio
HELLO: list[MessageParam] = [{"role": "user", "content": "hi"}]


def stock(server: Server, *, max_retries: int = 2) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=f"http://127.0.0.1:{server.port}", api_key="k", max_retries=max_retries)


async def test_it_reads_good_answers_as_ever() -> None:
    """Whole, by events, and by its helper; with the request id under its own name."""
    async with serving(answering(answer_of("end_turn"))) as server, stock(server) as client:
        message = await client.messages.create(model="m", max_tokens=9, messages=HELLO)
        assert message._request_id == (await server.one_record())["request_id"]
    async with serving(streaming(GOOD)) as server, stock(server) as client:
        stream = await client.messages.create(model="m", max_tokens=9, messages=HELLO, stream=True)
        assert [event.type async for event in stream][-1] == "message_stop"
        async with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as helper:
            final = await helper.get_final_message()
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 2)


@pytest.mark.parametrize(
    "tail", [b"", BLOCK_STOP + message_delta("end_turn"), BLOCK_STOP + message_delta(None) + MESSAGE_STOP, ERROR]
)
async def test_a_stream_that_fails_raises_with_our_code_where_it_would_have_ended_in_silence(tail: bytes) -> None:
    """What came before stays with the caller, and the request is not sent again."""
    text = ""
    async with serving(streaming(MESSAGE_START, BLOCK, tail)) as server, stock(server) as client:
        with pytest.raises(anthropic.APIStatusError) as caught:
            async with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as stream:
                async for part in stream.text_stream:
                    text += part
        record = await server.one_record()
    assert text == "Hello"
    assert caught.value.body["type"] == "error"  # type: ignore[index]
    assert caught.value.body["error"]["type"] == "api_error"  # type: ignore[index]
    assert caught.value.body["error"]["code"] in {"generation_aborted", "internal_server_error"}  # type: ignore[index]
    assert caught.value.request_id == record["request_id"]


class Counted:
    def __init__(self, app: App) -> None:
        self.app = app
        self.count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.count += 1
        await self.app(scope, receive, send)


@pytest.mark.parametrize(
    ("app", "raises", "requests"),
    [
        (answering({"error": "Unauthorized"}, status=401), anthropic.AuthenticationError, 1),
        (answering({}, status=409), anthropic.BadRequestError, 1),
        (answering({"detail": "Not Found"}, status=404), anthropic.NotFoundError, 1),
        (answering({}, status=500), anthropic.InternalServerError, 2),
        (answering(answer_of(None)), anthropic.APIStatusError, 2),
        (streaming(BEGUN[:0]), anthropic.APIStatusError, 2),
    ],
)
async def test_errors_are_typed_and_retried_as_the_registry_says(
    app: App, raises: type[anthropic.APIStatusError], requests: int
) -> None:
    """A fixable one never, whatever its status was; one that may pass as often as the client cares."""
    counted = Counted(app)
    async with serving(counted) as server, stock(server, max_retries=1) as client:
        with pytest.raises(raises) as caught:
            await client.messages.create(model="m", max_tokens=9, messages=HELLO)
    assert counted.count == requests
    assert caught.value.body["error"]["contract"] == "1"  # type: ignore[index]
