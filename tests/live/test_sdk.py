"""The whole of it: the Python SDK talks to real vLLM with the shim mounted, and every request ends in a definite state."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest
from tests.live.asking import CONTEXT, LONG, MUCH
from tests.live.vllm_server import VllmServer

from lastword import (
    AsyncClient,
    Client,
    ContextLengthExceeded,
    InvalidRequest,
    LastwordError,
    NotFound,
    RequestTimeout,
    RetryPolicy,
    StreamIncomplete,
    Timeouts,
)

CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "max_tokens": 8,
    "extra_body": {"ignore_eos": True},
}
ENDLESS: dict[str, Any] = {name: value for name, value in LONG.items() if name not in ("min_tokens", "ignore_eos")} | {
    "extra_body": {"min_tokens": MUCH, "ignore_eos": True}
}
IMPOSSIBLE: dict[str, Any] = {"structured_outputs": {"regex": "(((("}}


@pytest.fixture
def client(vllm: VllmServer) -> Any:
    """A client that would retry if it were let."""
    vllm.step_back()
    vllm.wait_idle()
    with Client(base_url=vllm.base_url, retry=RetryPolicy(max_attempts=3)) as client:
        yield client


def record_of(server: VllmServer, request_id: str | None) -> dict[str, Any]:
    """The one record of a request; a second would be a retry."""
    (record,) = server.wait_records(request_id=request_id)
    return record


def test_good_answers_are_complete(vllm: VllmServer, client: Client) -> None:
    """Whole and streamed, chat and completions, n of them, one connection for all."""
    done = client.chat.completions.create(**CHAT)
    assert done.choices[0].finish_reason == "length"
    assert done.usage is not None
    assert done.usage.completion_tokens == 8
    with client.chat.completions.create(**CHAT, n=2, stream=True, stream_options={"include_usage": True}) as stream:
        chunks = list(stream)
    assert stream.outcome is not None
    assert stream.outcome.completed
    assert dict(stream.finish_reasons) == {0: "length", 1: "length"}
    assert stream.usage is not None
    assert stream.usage["completion_tokens"] == 16
    texts = {0: "", 1: ""}
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == dict(stream.texts)
    several = client.completions.create(model="m", prompt=["a", "b"], max_tokens=4)
    assert [choice.index for choice in several.choices] == [0, 1]
    assert [model.id for model in client.models.list()] == ["m"]
    assert record_of(vllm, stream.request_id)["outcome"] == "completed"


def test_the_async_client_is_the_same(vllm: VllmServer) -> None:
    """Ten streams at once, every one complete."""

    async def read(client: AsyncClient) -> str:
        async with await client.chat.completions.create(**CHAT, stream=True) as stream:
            async for _ in stream:
                pass
        return str(stream.outcome)

    async def main() -> list[str]:
        async with AsyncClient(base_url=vllm.base_url) as client:
            return await asyncio.gather(*(read(client) for _ in range(10)))

    vllm.wait_idle()
    assert asyncio.run(main()) == ["completed"] * 10


def test_what_cannot_be_served_is_said_once_and_by_name(vllm: VllmServer, client: Client) -> None:
    """Context, grammar (which bare vLLM tells after its 200), model: each by its class, with one attempt."""
    with pytest.raises(ContextLengthExceeded) as context:
        client.completions.create(model="m", prompt="x" * 1800, max_tokens=MUCH, stream=True)
    assert context.value.details["max_model_len"] == CONTEXT
    assert context.value.details["max_tokens"] == MUCH
    assert context.value.details["prompt_tokens"] >= 1800
    with pytest.raises(InvalidRequest) as grammar:
        list(client.chat.completions.create(model="m", messages=CHAT["messages"], stream=True, extra_body=IMPOSSIBLE))
    with pytest.raises(NotFound) as model:
        client.completions.create(model="another", prompt="x")
    for caught in (context.value, grammar.value, model.value):
        assert len(caught.attempts) == 1
        assert (caught.category, caught.retryable) == ("fixable", False)
        assert record_of(vllm, caught.request_id)["state"] == "rejected"


def test_who_leaves_the_loop_stops_the_engine(vllm: VllmServer, client: Client) -> None:
    """The server's record has the disconnect, and the tokens stand still."""
    for chunk in client.completions.create(**ENDLESS, stream=True, extra_headers={"x-request-id": "left-1"}):
        if chunk.choices[0].text:
            break
    record = record_of(vllm, "left-1")
    assert (record["client_disconnected"], record["http_status"], record["disconnect_phase"]) == (
        True,
        499,
        "generating",
    )
    vllm.wait_idle()


def test_a_deadline_ends_both_sides(vllm: VllmServer, client: Client) -> None:
    """The total timer ends the call, and the engine stops: both know the deadline, and either may be the first to say so."""
    with pytest.raises(RequestTimeout) as caught:
        client.completions.create(**{**ENDLESS, "n": 8}, timeout=1.0)
    assert (caught.value.code, caught.value.timer) == ("deadline_exceeded", "total")
    assert caught.value.origin in ("client", "shim")
    record = record_of(vllm, caught.value.request_id)
    assert record["outcome"] in ("cancelled", "failed")  # the client's FIN and the deadline it had announced meet
    vllm.wait_idle()


@pytest.mark.fresh
def test_a_server_that_goes_away_is_never_taken_for_an_answer(fresh_vllm: VllmServer) -> None:
    """A stopped engine is silence that a timer ends; a killed server is a cut stream.  What came before is kept."""
    server = fresh_vllm
    server.step_back()
    timeouts = Timeouts(first_token=30, idle=3, total=60)
    with Client(base_url=server.base_url, timeouts=timeouts, retry=RetryPolicy(max_attempts=3)) as client:
        stream = client.completions.create(**{**ENDLESS, "n": 3}, stream=True)
        while not stream.text:  # the first tokens may be bytes that make no character yet
            next(stream)
        server.signal_engine(signal.SIGSTOP)
        with pytest.raises(RequestTimeout) as stalled:
            list(stream)
        assert (stalled.value.code, stalled.value.timer) == ("generation_stalled", "idle")
        assert stalled.value.partial.chunks > 0
        server.signal_engine(signal.SIGCONT)
        server.wait_idle()

        stream = client.completions.create(**{**ENDLESS, "n": 3}, stream=True)
        next(stream)
        server.process.kill()
        with pytest.raises(StreamIncomplete) as cut:
            list(stream)
        assert (cut.value.outcome, cut.value.code, len(cut.value.attempts)) == ("incomplete", "stream_incomplete", 1)
        with pytest.raises(LastwordError) as nobody:
            client.models.list()
        assert nobody.value.code == "connection_failed"
    for pid in server.processes():  # what a killed server leaves behind is not the matter here
        os.kill(pid, signal.SIGKILL)
