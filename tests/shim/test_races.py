"""Several endings at the same moment: always one start, at most one terminal, nothing after it, and one record."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.shim.apps import CHAT, DONE, ERROR, EVENTS, JSON, Message, Receive, Scope, Send, chunk, read_body
from tests.shim.wire import conforms, recording

from lastword_shim import Settings, Shim

BODY = json.dumps({"id": "c", "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]}).encode()


class Bench:
    """One exchange without a socket, each ending at hand as a function."""

    def __init__(self, *, stream: bool, turns: int = 1, hold: float = 60) -> None:
        self.stream = stream
        self.turns = turns  # of the loop that a send takes
        self.sent: list[Message] = []
        self.gone = asyncio.Event()
        self.do: asyncio.Queue[str] = asyncio.Queue()
        self.shim = Shim(self.app, settings=Settings(hold=hold, total_timeout=30))
        self.body_given = False
        self.slow_sends = False

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        listening = asyncio.ensure_future(receive())
        try:
            await self._answer(send, listening)
        finally:
            listening.cancel()

    async def _answer(self, send: Send, listening: asyncio.Future[Any]) -> None:
        if self.stream:
            await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        while True:
            step = asyncio.create_task(self.do.get())
            await asyncio.wait({step, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                step.cancel()
                return
            match step.result():
                case "chunk" if self.stream:
                    await send({"type": "http.response.body", "body": chunk("a"), "more_body": True})
                case "finish" if self.stream:
                    await send(
                        {"type": "http.response.body", "body": chunk("b", finish="stop") + DONE, "more_body": True}
                    )
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    return
                case "finish":
                    await send({"type": "http.response.start", "status": 200, "headers": JSON})
                    await send({"type": "http.response.body", "body": BODY, "more_body": False})
                    return
                case "error" if self.stream:
                    await send({"type": "http.response.body", "body": ERROR + DONE, "more_body": True})
                case "error":
                    await send({"type": "http.response.start", "status": 500, "headers": JSON})
                    await send({"type": "http.response.body", "body": b"{}", "more_body": False})
                    return
                case "raise":
                    raise RuntimeError("boom")
                case "return":
                    return

    async def receive(self) -> Message:
        if not self.body_given:
            self.body_given = True
            return {"type": "http.request", "body": json.dumps({"stream": self.stream}).encode(), "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.slow_sends:
            for _ in range(self.turns):
                await asyncio.sleep(0)
        if not self.gone.is_set():
            self.sent.append(message)

    async def run(self, endings: list[str], pauses: list[int], warm: int, early: int = 8) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = []
        scope = {"type": "http", "method": "POST", "path": CHAT, "headers": [(b"content-type", b"application/json")]}
        with recording(self.shim, records):
            serving = asyncio.create_task(self.shim(scope, self.receive, self.send))
            await asyncio.sleep(0)
            for _ in range(warm):
                self.do.put_nowait("chunk")
            if warm:
                await asyncio.sleep(0.001)
            self.slow_sends = True
            for _ in range(early):
                await asyncio.sleep(0)
            draining: list[asyncio.Task[None]] = []
            for ending, pause in zip(endings, pauses, strict=False):
                if ending == "gone":
                    self.gone.set()
                elif ending == "shutdown":
                    draining.append(asyncio.create_task(self.shim.drain(0)))
                else:
                    self.do.put_nowait(ending)
                for _ in range(pause):
                    await asyncio.sleep(0)
            self.do.put_nowait("return")
            async with asyncio.timeout(5):
                await serving
                await asyncio.gather(*draining)
        return records


def check(bench: Bench, records: list[dict[str, Any]]) -> None:
    kinds = [message["type"] for message in bench.sent]
    body = b"".join(message.get("body", b"") for message in bench.sent)
    assert kinds.count("http.response.start") <= 1
    assert kinds[:1] in ([], ["http.response.start"])
    ends = [
        index
        for index, message in enumerate(bench.sent)
        if message["type"] == "http.response.body" and not message.get("more_body")
    ]
    assert len(ends) <= 1
    if ends:
        assert ends[0] == len(bench.sent) - 1, "something followed the end"
    assert body.count(b"[DONE]") + body.count(b'{"error"') <= 1
    (record,) = records
    assert record["client_disconnected"] is (record["error_code"] == "client_disconnected")
    if not bench.gone.is_set():
        assert ends, "the client still waits"
        assert record["outcome"] == ("completed" if b"[DONE]" in body or body == BODY else "failed")
        if bench.stream and bench.sent[0]["status"] == 200:
            assert body.endswith((DONE, b"\n\n"))
            assert (b"\n" + body).count(b'\ndata: {"error"') == body.count(b'{"error"'), "an error that is no event"
        elif record["outcome"] == "failed":
            conforms(json.loads(body), "error")
            assert bench.sent[0]["status"] == record["http_status"]


ENDINGS = ["finish", "error", "raise", "return", "gone", "shutdown"]


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(ENDINGS, 2)))
@pytest.mark.parametrize("pause", [0, 1, 2, 5])
async def test_two_endings_at_the_same_moment(first: str, second: str, stream: bool, pause: int) -> None:
    """Every pair in both orders, some loop turns apart."""
    for warm in (0, 2):
        bench = Bench(stream=stream)
        check(bench, await bench.run([first, second], [pause, pause], warm))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    endings=st.lists(st.sampled_from([*ENDINGS, "chunk"]), min_size=1, max_size=6),
    pauses=st.lists(st.integers(0, 6), min_size=6, max_size=6),
    stream=st.booleans(),
    warm=st.integers(0, 3),
    turns=st.integers(0, 4),
    hold=st.sampled_from([0, 60]),
    early=st.integers(0, 12),
)
def test_any_endings_in_any_order(
    endings: list[str], pauses: list[int], stream: bool, warm: int, turns: int, hold: int, early: int
) -> None:
    """Hypothesis looks for an order that gives two terminals, none, or two records."""

    async def play() -> None:
        bench = Bench(stream=stream, turns=turns, hold=hold)
        check(bench, await bench.run(endings, pauses, warm, early))

    asyncio.run(play())


@pytest.mark.anyio
async def test_the_timer_races_everything() -> None:
    """A limit that runs out in the same turn as another ending."""
    dice = random.Random(7)
    for _ in range(60):
        bench = Bench(stream=dice.random() < 0.5)
        bench.shim = Shim(bench.app, settings=Settings(hold=60, total_timeout=dice.choice([0.001, 0.002, 0.004, 0.01])))
        check(
            bench,
            await bench.run(dice.choices(ENDINGS, k=2), [dice.randrange(5), dice.randrange(5)], dice.randrange(3)),
        )


@pytest.mark.anyio
@pytest.mark.parametrize("ending", ["error", "raise", "shutdown"])
async def test_an_error_while_the_start_is_on_its_way_is_an_event(ending: str) -> None:
    """The hold has just ended, and the start waits for a slow connection: too late for a status, and no body of JSON."""
    bench = Bench(stream=True, turns=40, hold=0)
    bench.slow_sends = True
    check(bench, await bench.run([ending], [3], 0, early=12))
    assert [message["type"] for message in bench.sent].count("http.response.start") == 1
