"""`/lastword/ready`: one word for everybody, by what gets done and not by what is up."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, Literal

import pytest
from tests.shim.apps import CHAT, Receive, Scope, Send
from tests.shim.engines import Counting
from tests.shim.guarded import A, Guarded, cancel, generating, requests
from tests.shim.wire import Answer, Server, serving

from lastword_shim.exchange.progress import Progress

pytestmark = pytest.mark.anyio
QUEUED = {**A, "x-kind": "queued"}


async def ready(server: Server) -> tuple[int, str]:
    """Without a key, as a kubelet asks."""
    began = time.monotonic()
    answer = await server.ask(b"", path="/lastword/ready", method="GET")
    assert time.monotonic() - began < 0.5
    assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert answer.header("cache-control") == "no-store"
    return answer.status, answer.body.decode()


async def becomes(server: Server, word: str) -> None:
    async with asyncio.timeout(5):
        while (await ready(server))[1] != word:
            await asyncio.sleep(0.02)


async def test_an_idle_server_and_one_at_work_are_ready() -> None:
    """The application is not asked."""
    app = Guarded()
    async with serving(app, engine=Counting(), stall_after=0.2) as server:
        assert await ready(server) == (200, "ready")
        async with generating(server, "x"):
            await asyncio.sleep(0.4)
            assert await ready(server) == (200, "ready")
        assert await ready(server) == (200, "ready")
        assert len([headers for headers in app.asked if b"authorization" not in headers]) == 0


@pytest.mark.parametrize("condition", ["loading", "asleep", "paused", "dead"])
async def test_what_the_engine_says_of_itself_is_the_word(
    condition: Literal["loading", "asleep", "paused", "dead"],
) -> None:
    """And over as soon as it says otherwise; stopping goes before all."""
    engine = Counting()
    async with serving(Guarded(), engine=engine) as server:
        engine.state = condition
        assert await ready(server) == (503, condition)
        engine.state = None
        assert await ready(server) == (200, "ready")
        engine.state = condition
        await server.shim.drain(0)
        assert await ready(server) == (503, "draining")


async def test_requests_that_wait_while_no_token_comes_are_a_stalled_engine() -> None:
    """Until one comes, for whomever."""
    async with serving(Guarded(), engine=Counting(), stall_after=0.3) as server:
        async with generating(server, "x", QUEUED, state="queued"):
            assert await ready(server) == (200, "ready")
            await becomes(server, "stalled")
            assert (await ready(server))[0] == 503
            async with generating(server, "y"):
                await becomes(server, "ready")
            await becomes(server, "stalled")


async def test_a_generation_that_stands_still_is_stalled_too() -> None:
    """And the server is ready again once nobody waits."""
    app = Guarded()
    async with serving(app, engine=Counting(), stall_after=0.3) as server:
        async with generating(server, "x"):
            app.pace = 60
            await becomes(server, "stalled")
            assert (await cancel(server, "x")).status == 200
            await becomes(server, "ready")
            await asyncio.sleep(0.4)
            assert await ready(server) == (200, "ready")


async def test_those_that_wait_in_the_shims_queue_are_not_the_engines() -> None:
    """It has not been asked yet; but those before them are."""
    app = Guarded()
    async with serving(app, engine=Counting(), stall_after=0.2, max_inflight=1, max_queued=1) as server:
        async with generating(server, "1"), generating(server, "2", state="queued"):
            await asyncio.sleep(0.4)
            assert await ready(server) == (200, "ready")
            app.pace = 60
            await becomes(server, "stalled")


class Blind(Counting):
    """An engine whose tokens cannot be seen."""

    def refresh(self, ticket: object) -> bool:
        return False


class Silent(Guarded):
    """One that says nothing of what it does."""

    async def _answer(self, send: Send, ticket: Any, kind: str, *, stream: bool) -> None:
        if stream:
            await super()._answer(send, ticket, kind, stream=True)
        else:
            await self.go.wait()


async def test_where_tokens_cannot_be_seen_their_absence_means_nothing() -> None:
    """A whole answer, a request that generates nothing; a stream is seen, and stalls."""
    async with serving(Silent(), engine=Blind(), stall_after=0.2) as server:
        async with contextlib.AsyncExitStack() as stack:
            for path, stream in ((CHAT, False), ("/v1/embeddings", False), ("/v1/embeddings", True)):
                headers = {**A, "x-request-id": path.rpartition("/")[2]}
                await stack.enter_async_context(server.connect({"stream": stream}, path=path, headers=headers))
            async with asyncio.timeout(5):
                while len(await requests(server)) < 3:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.4)
            assert await ready(server) == (200, "ready")
            async with generating(server, "x", QUEUED, state="queued"):
                await becomes(server, "stalled")


async def test_a_client_that_does_not_read_is_no_stalled_engine() -> None:
    """Its engine waits for it, or has done its part."""
    async with serving(Guarded(pace=0), engine=Counting(), stall_after=0.3) as server:
        async with server.connect({"stream": True}, headers={**A, "x-kind": "large"}) as (reader, _):
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.8)
            assert await ready(server) == (200, "ready")
            async with generating(server, "x", QUEUED, state="queued"):
                assert await ready(server) == (200, "ready")  # it has only begun to wait
                await becomes(server, "stalled")


async def test_clients_that_give_up_soon_do_not_hide_that_nobody_is_served() -> None:
    """None of them waits as long as the limit; together they do."""
    async with serving(Guarded(), engine=Counting(), stall_after=0.5) as server:

        async def impatient(number: int) -> None:
            async with generating(server, str(number), QUEUED, state="queued"):
                await asyncio.sleep(0.25)

        waiting = [asyncio.create_task(impatient(0))]
        async with asyncio.timeout(5):
            while (await ready(server))[1] != "stalled":
                await asyncio.sleep(0.1)
                waiting.append(asyncio.create_task(impatient(len(waiting))))
        assert len(waiting) > 3
        await asyncio.gather(*waiting)
        assert await ready(server) == (200, "ready")


async def test_it_answers_while_the_application_hangs_on_everything() -> None:
    """Nothing of it is asked."""

    async def hang(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async with serving(hang) as server:
        assert await ready(server) == (200, "ready")


async def test_a_sleeping_engine_is_asked_for_nothing() -> None:
    """503 `model_loading` at once, whatever would make it work, also for who was waiting here; the rest goes on."""
    app, engine = Guarded(), Counting()
    async with serving(app, engine=engine, max_inflight=1, max_queued=5) as server:
        async with generating(server, "1") as first, generating(server, "2", state="queued") as second:
            engine.state = "asleep"
            for path in (CHAT, "/v1/embeddings", "/v1/responses", "/v1/messages"):
                answer = await server.ask({"model": "m"}, path=path, headers=A)
                assert answer.status == 503
                assert b"model_loading" in answer.body
                assert (answer.header("x-should-retry"), answer.header("retry-after")) == ("true", "1")
            assert (await server.ask({"model": "m"})).status == 401
            assert (await server.ask(b"", path="/v1/models", method="GET", headers=A)).status == 200
            app.go.set()
            assert "[DONE]" in (await first).events
            assert (await second).error["code"] == "model_loading"
            engine.state = None
            assert (await server.ask({"model": "m"}, headers=A)).status == 200
        states = {record["error_code"]: record["state"] for record in server.records if record["endpoint"] == CHAT}
        assert states["model_loading"] == "rejected"


async def test_a_paused_engine_is_waited_for_as_long_as_the_limits_say() -> None:
    """New weights are loaded meanwhile, and then it goes on."""
    engine = Counting()
    async with serving(Guarded(), engine=engine, queue_timeout=0.4, stall_after=0.2) as server:
        engine.state = "paused"
        async with generating(server, "x", QUEUED, state="queued") as task:
            await asyncio.sleep(0.3)
            assert await ready(server) == (503, "paused")
            answer: Answer = await task
            assert answer.error["code"] == "queue_timeout"


class Standing:
    """As much of an exchange as is looked at."""

    def __init__(self, *, shows_tokens: bool = True) -> None:
        self.shows_tokens = shows_tokens
        self.is_open, self.is_blocked = True, False
        self.last = 0.0
        self.life: Any = self

    @property
    def last_token_at(self) -> float | None:
        return self.last or None

    @property
    def progress_at(self) -> float:
        return self.last


def test_it_counts_from_the_later_of_the_last_token_and_when_somebody_began_to_wait() -> None:
    """To the second, by a clock of ours."""
    now = 1000.0
    progress: Any = Progress(lambda: now)
    first, second = Standing(), Standing()
    progress.begin(first)
    now = 1029.9
    assert not progress.stalled(30)
    now = 1030.0
    assert progress.stalled(30)
    first.last, now = now, now + 0.2
    assert not progress.stalled(30)
    progress.end(first)
    progress.begin(second)
    now = 1060.0
    assert not progress.stalled(30)
    now += 0.2
    assert progress.stalled(30)
    second.is_blocked, now = True, now + 0.2
    assert not progress.stalled(30)
    progress.begin(first)  # nobody had waited: the one before does not read
    now += 29
    assert not progress.stalled(30)
    first.is_open, now = False, now + 2
    assert not progress.stalled(30)


def test_a_look_at_all_holds_for_a_moment() -> None:
    """Anybody may ask, as often as he likes."""
    now = 1000.0
    progress: Any = Progress(lambda: now)
    looked = 0

    class Looked(Standing):
        @property
        def progress_at(self) -> float:
            nonlocal looked
            looked += 1
            return 0.0

    for _ in range(100):
        progress.begin(Looked())
    now += 60
    for _ in range(50):
        assert progress.stalled(30)
    assert looked == 100
