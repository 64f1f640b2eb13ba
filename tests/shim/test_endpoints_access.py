"""Who may use `/lastword/requests`: the engine itself is asked, and whatever it says, nobody sees what is another's."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import pytest
from tests.shim.apps import Receive, Scope, Send
from tests.shim.engines import Counting
from tests.shim.guarded import NOBODY, A, B, Guarded, cancel, generating, get, reply, requests
from tests.shim.wire import serving

from lastword_shim.endpoints import access

pytestmark = pytest.mark.anyio


async def test_keys_that_the_engine_does_not_take_open_nothing() -> None:
    """In the contract's words and with the engine's challenge; the same for any id, so that none can be tried out."""
    async with serving(Guarded(), engine=Counting()) as server, generating(server, "x"):
        for headers in ({}, NOBODY, {"authorization": "a"}, {"authorization": "Bearer a b"}, {"cookie": "a"}):
            for answer in (await get(server, headers=headers), await cancel(server, "x", headers)):
                assert (answer.status, answer.error["code"]) == (401, "unauthorized")
                assert answer.header("www-authenticate") == 'Bearer realm="engine"'
                assert answer.header("cache-control") == "no-store"
        assert len(server.records) == 0


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "permission_denied"), (404, "not_implemented"), (500, "engine_unavailable"), (302, "engine_unavailable")],
)
async def test_what_the_engine_says_to_its_models_counts(status: int, code: str) -> None:
    """Only a yes is one."""
    app = Guarded()
    app.models = lambda _scope, _receive, send: reply(send, status, {})
    async with serving(app) as server:
        assert (await get(server)).error["code"] == code
        assert (await cancel(server, "x")).error["code"] == code


@pytest.mark.parametrize("how", ["hangs", "raises", "returns", "does not stop"])
async def test_an_engine_that_does_not_say_opens_nothing_and_keeps_nobody_waiting(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503; whoever has a request at the engine was let in by it and needs no asking."""
    monkeypatch.setattr(access, "PATIENCE", 0.2)
    app = Guarded()

    async def models(_scope: Scope, receive: Receive, _send: Send) -> None:
        if how == "raises":
            raise RuntimeError("no")
        while how == "hangs" and (await receive())["type"] != "http.disconnect":
            pass
        if how == "does not stop":
            for _ in range(2):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.3)

    async with serving(app, engine=Counting()) as server:
        async with generating(server, "x"):
            app.models = models
            await asyncio.sleep(0.01)
            began = time.monotonic()
            for headers in (B, NOBODY, {}):
                answer = await get(server, headers=headers)
                assert (answer.status, answer.error["code"]) == (503, "engine_unavailable")
            assert time.monotonic() - began < 2
            assert (await cancel(server, "x", B)).status == 503
            assert [one["request_id"] for one in await requests(server)] == ["x"]
            assert (await cancel(server, "x")).status == 200


async def test_an_engine_without_a_key_is_open_here_too() -> None:
    """All who come without credentials are one caller; those who show some are told apart by them."""
    async with serving(Guarded(keys=()), engine=Counting()) as server:
        async with generating(server, "1", {}), generating(server, "2", A):
            assert [one["request_id"] for one in await requests(server, {})] == ["1"]
            assert [one["request_id"] for one in await requests(server, A)] == ["2"]
            assert (await cancel(server, "1", A)).status == 404
            assert (await cancel(server, "1", {})).status == 200


async def test_the_engine_is_asked_once_in_a_while_and_as_its_caller_would() -> None:
    """Several at the same time are one question, a wrong key too; who shows no credentials is not remembered."""
    app = Guarded()
    extra = {"cookie": "c", "accept-encoding": "gzip", "x-request-id": "mine", "request-timeout-ms": "1", "range": "b"}
    async with serving(app) as server:
        for headers in (A, NOBODY):
            app.asked.clear()
            answers = await asyncio.gather(*[get(server, headers={**headers, **extra}) for _ in range(5)])
            assert len({answer.status for answer in answers}) == 1
            await get(server, headers=headers)
            (asked,) = app.asked
            assert asked.pop(b"x-request-id").startswith(b"lastword-")
            assert asked == {
                b"host": b"test",
                b"authorization": headers["authorization"].encode(),
                b"cookie": b"c",
                b"connection": b"close",
            }
        app.asked.clear()
        for _ in range(3):
            await get(server, headers={})
        assert len(app.asked) == 3


async def test_an_answer_about_a_key_does_not_hold_for_ever_nor_for_endless_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A key that was taken back is refused some seconds later; a flood of wrong ones takes no memory."""
    monkeypatch.setattr(access, "REMEMBERED", 0.2)
    monkeypatch.setattr(access, "MOST_REMEMBERED", 3)
    app = Guarded()
    async with serving(app) as server:
        assert (await get(server)).status == 200
        app.keys = ("b",)
        assert (await get(server)).status == 200
        await asyncio.sleep(0.25)
        assert (await get(server)).status == 401
        for number in range(6):
            await get(server, headers={"x-api-key": str(number)})
        known: Any = server.shim._endpoints
        assert len(known._access._known) == 3
        assert known._access._asking == {}


async def test_a_flood_of_keys_asks_a_hanging_engine_so_often_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is told at once."""
    monkeypatch.setattr(access, "PATIENCE", 0.3)
    monkeypatch.setattr(access, "MOST_ASKED", 4)
    app = Guarded()

    async def hang(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    app.models = hang
    async with serving(app) as server:
        many = [get(server, headers={"x-api-key": str(number)}) for number in range(20)]
        answers = await asyncio.gather(*many)
        assert {answer.error["code"] for answer in answers} == {"engine_unavailable"}
        assert len(app.asked) == 4


async def test_several_processes_behind_one_port_tell_no_half_truths() -> None:
    """Each knows its own requests only; readiness is each one's own."""

    class Shared(Counting):
        def processes(self) -> int:
            return 2

    async with serving(Guarded(), engine=Shared()) as server:
        for answer in (await get(server), await cancel(server, "x")):
            assert (answer.status, answer.error["code"]) == (501, "not_implemented")
            assert "--api-server-count 1" in answer.error["message"]
        assert (await get(server, "/lastword/ready")).body == b"ready"
