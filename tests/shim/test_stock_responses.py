"""What a stock openai client makes of the Responses endpoint's endings."""

from __future__ import annotations

import openai
import pytest
from tests.shim.apps import answering, streaming
from tests.shim.events import BEGUN, FAILED, GOOD, WHOLE, completed, response
from tests.shim.wire import Server, serving

pytestmark = pytest.mark.anyio


def stock(server: Server) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="k", max_retries=0)


@pytest.mark.parametrize("tail", [b"", completed("cancelled"), FAILED])
async def test_a_stock_loop_raises_with_our_code_where_it_would_have_ended_in_silence(tail: bytes) -> None:
    """What came before stays with the caller."""
    seen = []
    async with serving(streaming(BEGUN, tail)) as server, stock(server) as client:
        stream = await client.responses.create(model="m", input="hi", stream=True)
        with pytest.raises(openai.APIError) as caught:
            async for event in stream:
                seen.append(event.type)  # noqa: PERF401 (what came before the error counts)
        await stream.close()
    assert seen.count("response.output_text.delta") == 2
    assert caught.value.code in {"generation_aborted", "internal_server_error"}
    assert caught.value.body["category"] == "retryable"  # type: ignore[index]


async def test_a_stock_helper_reads_a_good_stream_and_raises_on_a_bad_one() -> None:
    """`responses.stream()` accumulates; its final response is there, or the error is."""
    async with serving(streaming(GOOD)) as server, stock(server) as client:
        async with client.responses.stream(model="m", input="hi") as stream:
            assert (await stream.get_final_response()).output_text == "Hello"
    async with serving(streaming(BEGUN)) as server, stock(server) as client:
        with pytest.raises(openai.APIError) as caught:
            async with client.responses.stream(model="m", input="hi") as stream:
                await stream.get_final_response()
    assert caught.value.code == "generation_aborted"


async def test_a_stock_helper_hands_an_incomplete_response_over_as_its_event() -> None:
    """As it does with OpenAI's own service."""
    async with serving(streaming(WHOLE, completed("incomplete"))) as server, stock(server) as client:
        async with client.responses.stream(model="m", input="hi") as stream:
            events = [event async for event in stream]
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.output_text == "Hello"
    assert events[-1].response.incomplete_details.reason == "max_output_tokens"  # type: ignore[union-attr]


async def test_a_whole_answer_that_failed_raises_in_a_stock_client() -> None:
    """Without the shim it is a response like any other, whose status somebody must look at."""
    async with serving(answering(response("failed"))) as server, stock(server) as client:
        with pytest.raises(openai.InternalServerError) as caught:
            await client.responses.create(model="m", input="hi")
    assert caught.value.code == "generation_aborted"
