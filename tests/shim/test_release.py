"""What an application leaves open at vLLM when it is stopped: the shim closes it, or vLLM would generate for nobody."""

from __future__ import annotations

import asyncio
import types
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from tests.shim.inprocess import answered
from tests.shim.test_start import Params

from lastword_shim.engine import Ticket, enter

pytestmark = pytest.mark.anyio
ASKING = {"model": "m", "stream": True}
PROMPT = {"prompt_token_ids": [1]}


class Client:
    """Of AsyncLLM what `Generations` touches: each request counts a token whenever it is looked at, until it is aborted."""

    def __init__(self) -> None:
        self.aborted: list[str] = []
        self.submitted = asyncio.Event()
        self.handing_over: asyncio.Event | None = None
        self.output_processor = types.SimpleNamespace(request_states={}, external_req_ids={})
        self.errored = False

    async def generate(self, prompt: Any, params: Any, request_id: str) -> AsyncGenerator[Any, None]:
        internal = f"{request_id}-{len(self.output_processor.request_states)}"
        detokenizer = types.SimpleNamespace(num_output_tokens=lambda: 1)
        state = types.SimpleNamespace(detokenizer=detokenizer, stats=None)
        self.output_processor.request_states[internal] = state
        self.output_processor.external_req_ids.setdefault(request_id, []).append(internal)
        self.submitted.set()
        if self.handing_over is not None:
            await self.handing_over.wait()  # as vLLM does between the choices of one request
        try:
            while True:
                await asyncio.sleep(0)
                yield types.SimpleNamespace(outputs=[], metrics=None)
        except (asyncio.CancelledError, GeneratorExit):
            await self.abort(request_id)
            raise

    async def abort(self, request_id: str) -> None:
        for internal in self.output_processor.external_req_ids.pop(request_id, ()):
            self.aborted.append(internal)
            del self.output_processor.request_states[internal]


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def engine(vllm: Any, client: Client) -> Any:
    return vllm.VllmEngine(types.SimpleNamespace(engine_client=client))


@pytest.fixture
async def attached(engine: Any) -> Any:
    engine.attach(None)
    return engine


class Dropping:
    """An application that reads from the engine and is cancelled in its send; what it read from is kept by a cycle, as an
    exception's traceback does it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.cycle: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        outputs = self.client.generate(PROMPT, Params(), "r")
        self.cycle.append(outputs)
        await anext(outputs)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        while (await receive())["type"] != "http.disconnect":
            pass


@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"])
async def test_a_generator_that_the_application_dropped_is_closed(engine: Any, client: Client, route: str) -> None:
    """Before the record is written, so that its counts are the last."""
    _, record = await answered(Dropping(client), ASKING, path=route, engine=engine, total_timeout=0.05)
    assert record["error_code"] == "generation_timeout"
    assert record["completion_tokens"] == 1
    assert client.aborted == ["r-0"]
    assert not engine._generations._holders


async def test_what_is_meant_to_go_on_in_the_background_does(engine: Any, client: Client) -> None:
    """A Responses request that says so, whatever becomes of its answer."""
    asking = {**ASKING, "background": True}
    await answered(Dropping(client), asking, path="/v1/responses", engine=engine, total_timeout=0.05)
    assert client.aborted == []


async def test_one_that_another_task_reads_is_aborted(attached: Any, client: Client) -> None:
    """An application that does not stop, and cannot be closed from outside."""
    client.handing_over = asyncio.Event()
    ticket = Ticket("r")
    enter(ticket)
    reading = asyncio.ensure_future(anext(client.generate(PROMPT, Params(), "r")))
    await client.submitted.wait()
    await attached.release(ticket)
    assert client.aborted == ["r-0"]
    reading.cancel()


async def test_choices_that_were_being_handed_over_are_aborted(attached: Any, client: Client) -> None:
    """vLLM knows of none until it has handed over all."""
    client.handing_over = asyncio.Event()
    enter(Ticket("r"))
    reading = asyncio.ensure_future(anext(client.generate(PROMPT, Params(), "r")))
    await client.submitted.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert client.aborted == ["r-0"]


async def test_another_exchange_of_the_same_id_keeps_its_own(attached: Any, client: Client) -> None:
    """A body may name its id, and two may name the same; by it alone neither is aborted while both are there."""
    client.handing_over = asyncio.Event()
    tickets, reading = [Ticket("a"), Ticket("b")], []
    for ticket in tickets:
        enter(ticket)
        reading.append(asyncio.ensure_future(anext(client.generate(PROMPT, Params(), "same"))))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(client.output_processor.request_states) == 2
    await attached.release(tickets[0])
    reading[0].cancel()
    await asyncio.wait(reading[:1])
    assert client.aborted == []
    client.handing_over.set()
    await reading[1]
    await attached.release(tickets[1])
    assert client.aborted == ["same-0", "same-1"]
