"""`/lastword/requests`: a caller sees what is his own and nothing else, whatever the engine thinks of keys."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from tests.shim.apps import CHAT, Message, Receive, Scope, Send, answering
from tests.shim.guarded import NOBODY, A, B, Guarded, cancel, generating, reply, requests
from tests.shim.test_timers import WHOLE, Counting
from tests.shim.wire import Answer, Server, serving

from lastword_shim import Shim
from lastword_shim.console import access, listing

pytestmark = pytest.mark.anyio
LIST = "/lastword/requests"


async def get(server: Server, path: str = LIST, headers: dict[str, str] = A, method: str = "GET") -> Answer:
    return await server.ask(b"", path=path, method=method, headers=headers)


async def test_a_caller_sees_his_own_requests_with_their_states_and_ages() -> None:
    """Oldest first; what is not known is null; nothing may keep the answer."""
    async with serving(Guarded(), engine=Counting()) as server:
        deadline = {**A, "request-timeout-ms": "60000", "x-request-attempt": "2"}
        async with generating(server, "old", deadline, max_tokens=9), generating(server, "b-1", B):
            async with generating(server, "new", {**A, "x-kind": "queued"}, state="queued", stream=False, model="m2"):
                answer = await get(server)
                old, new = json.loads(answer.body)["requests"]
                assert [one["request_id"] for one in await requests(server, B)] == ["b-1"]
    assert answer.header("cache-control") == "no-store"
    assert json.loads(answer.body) == {"requests": [old, new], "total": 2, "truncated": False}
    for entry in (old, new):
        assert entry.pop("age_ms") >= entry.pop("state_age_ms") >= 0
    assert 0 < old.pop("deadline_left_ms") <= 60000
    assert old.pop("completion_tokens") > 0
    assert 0 <= old.pop("since_last_token_ms") < 1000
    assert 0 <= old.pop("queue_time_ms") < 1000
    common = {"endpoint": CHAT, "prompt_tokens": 3, "position": None}
    known = {"request_id": "old", "attempt": 2, "model": "m", "stream": True, "state": "generating", "max_tokens": 9}
    assert old == {**common, **known}
    unknown = dict.fromkeys(["deadline_left_ms", "since_last_token_ms", "queue_time_ms", "max_tokens"])
    known = {"request_id": "new", "attempt": 1, "model": "m2", "stream": False, "state": "queued"}
    assert new == {**common, **unknown, **known, "completion_tokens": 0}


async def test_states_and_models_can_be_chosen() -> None:
    """Several of each; a state that there is not is told."""
    async with serving(Guarded(), engine=Counting()) as server:
        async with (
            generating(server, "1", model="x"),
            generating(server, "2", {**A, "x-kind": "queued"}, state="queued", model="y z"),
        ):
            for query, expected in {
                "?state=queued": ["2"],
                "?state=queued&state=generating": ["1", "2"],
                "?state=received": [],
                "?model=x": ["1"],
                "?model=y+z&model=x&other=1": ["1", "2"],
                "?model=x&state=queued": [],
                "?model=": [],
            }.items():
                assert [one["request_id"] for one in await requests(server, query=query)] == expected, query
            for query in ("?state=done", "?state=", "?" + "a=1&" * 200):
                answer = await get(server, LIST + query)
                assert (answer.status, answer.error["code"]) == (400, "invalid_request_error")
            assert "received, queued, generating" in (await get(server, LIST + "?state=done")).error["message"]


async def test_places_in_the_shims_own_queue_are_told() -> None:
    """Those of all callers count."""
    async with serving(Guarded(), engine=Counting(), max_inflight=1, max_queued=5) as server:
        async with (
            generating(server, "in"),
            generating(server, "1", B, state="queued"),
            generating(server, "2", state="queued"),
        ):
            found = {one["request_id"]: (one["state"], one["position"]) for one in await requests(server)}
            assert found == {"in": ("generating", None), "2": ("queued", 2)}
            assert [one["position"] for one in await requests(server, B)] == [1]


async def test_a_request_whose_body_has_not_come_is_received() -> None:
    """It has no model yet."""
    async with serving(Guarded(), engine=Counting()) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a\r\ncontent-length: 100\r\n\r\n{{"
        writer.write(head.encode())
        async with asyncio.timeout(2):
            while not (found := await requests(server)):
                await asyncio.sleep(0.01)
        assert [(one["state"], one["model"], one["stream"]) for one in found] == [("received", None, None)]
        writer.close()
        del reader


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
        known: Any = server.shim._console
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


async def test_methods_and_paths() -> None:
    """405 says what is allowed, 404 is the contract's, HEAD has the head and nothing else; none leaves a record."""
    async with serving(Guarded(), engine=Counting()) as server:
        for path, method, allow in [
            (LIST, "POST", "GET, HEAD"),
            (LIST, "DELETE", "GET, HEAD"),
            ("/lastword/ready", "POST", "GET, HEAD"),
            ("/lastword/metrics", "PUT", "GET, HEAD"),
            (f"{LIST}/x/cancel", "GET", "POST"),
            (f"{LIST}/x/cancel", "OPTIONS", "POST"),
        ]:
            answer = await get(server, path, method=method)
            assert (answer.status, answer.error["code"], answer.header("allow")) == (405, "method_not_allowed", allow)
        for path in (
            "",
            "x",
            "requests/",
            "requests/x",
            "requests/cancel",
            "requests/x/cancel/",
            "ready/",
            "Ready",
            "/ready",
        ):
            answer = await get(server, f"/lastword/{path}")
            assert (answer.status, answer.error["code"]) == (404, "not_found"), path
        for path in (LIST, "/lastword/ready"):
            head = await get(server, path, method="HEAD")
            whole = await get(server, path)
            assert (head.status, head.body, head.complete) == (200, b"", False)
            assert head.header("content-length") == str(len(whole.body))
        own = await get(server, headers={**A, "x-request-id": "mine-1"})
        assert own.header("x-request-id") == "mine-1"
        assert len((await get(server, headers={**A, "x-request-id": "not fit"})).header("x-request-id") or "") == 32
        assert server.records == []


async def test_the_rest_is_the_applications() -> None:
    """Names that only begin alike, and preflights; with the setting off, all of it."""
    async with serving(answering(WHOLE)) as server:
        for path in ("/lastword", "/lastwordy/ready", "/v1/lastword/ready", "/LASTWORD/ready"):
            assert (await server.ask(path=path)).body == json.dumps(WHOLE).encode(), path
        preflight = {"access-control-request-method": "POST"}
        assert (await get(server, f"{LIST}/x/cancel", preflight, "OPTIONS")).body == json.dumps(WHOLE).encode()
    async with serving(answering(WHOLE), endpoints=False) as server:
        for path in (LIST, f"{LIST}/x/cancel", "/lastword/ready", "/lastword/x"):
            assert (await server.ask(path=path)).body == json.dumps(WHOLE).encode(), path


@pytest.mark.parametrize("shown", ["", "/root"])
async def test_a_root_path_is_respected(shown: str) -> None:
    """Whether the proxy in front has taken it off or not; the question takes the same way."""
    app = Guarded()
    paths = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["path"])
        await app(scope, receive, send)

    def mounted(shim: Shim) -> Any:
        async def outer(scope: Scope, receive: Receive, send: Send) -> None:
            await shim({**scope, "root_path": "/root"}, receive, send)

        return outer

    async with serving(inner, wrap=mounted) as server:
        assert (await get(server, f"{shown}{LIST}")).status == 200
        assert paths == [f"{shown}/v1/models"]
        assert (await get(server, f"{shown}/lastword/ready")).body == b"ready"


async def test_answers_and_refusals_carry_the_applications_cors_headers() -> None:
    """A page that shows the list is a browser's."""
    inner = Starlette(middleware=[Middleware(CORSMiddleware, allow_origins=["https://a.example"])])
    app = Guarded()

    def mounted(shim: Shim) -> Any:
        async def outer(scope: Scope, receive: Receive, send: Send) -> None:
            await shim({**scope, "app": inner}, receive, send)

        return outer

    async with serving(app, wrap=mounted) as server:
        for headers, status in ((A, 200), ({}, 401)):
            answer = await get(server, headers={**headers, "origin": "https://a.example"})
            assert (answer.status, answer.header("access-control-allow-origin")) == (status, "https://a.example")


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


async def test_a_thousand_open_requests_are_listed_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no more than that, told as such."""
    count = listing.MOST + 1
    async with serving(Guarded(pace=5), engine=Counting()) as server:
        gone = asyncio.Event()

        async def receive_of(body: list[Message]) -> Message:
            if body:
                return body.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def drop(_message: Message) -> None: ...

        scope = {"type": "http", "method": "POST", "path": CHAT, "headers": [(b"authorization", b"Bearer a")]}
        bodies: list[list[Message]] = [
            [{"type": "http.request", "body": b'{"model": "m", "stream": true}', "more_body": False}]
            for _ in range(count)
        ]
        tasks = [
            asyncio.create_task(server.shim(dict(scope), lambda body=body: receive_of(body), drop))  # type: ignore[misc]
            for body in bodies
        ]
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            while len(await requests(server, query="?state=queued")) < listing.MOST:
                await asyncio.sleep(0.05)
        began = time.monotonic()
        answer = await get(server)
        took = time.monotonic() - began
        found = json.loads(answer.body)
        assert (len(found["requests"]), found["total"], found["truncated"]) == (listing.MOST, count, True)
        assert took < 0.5, took
        assert (await requests(server, B)) == []
        began = time.monotonic()
        assert (await get(server, "/lastword/ready")).body == b"ready"
        assert time.monotonic() - began < 0.1
        gone.set()
        await asyncio.wait(tasks)


async def test_the_shims_own_metrics_stand_here_and_nobody_elses() -> None:
    """For a scraper of the sidecar, whose engine knows nothing of them."""
    async with serving(answering(WHOLE)) as server:
        await server.ask({})
        answer = await get(server, "/lastword/metrics", {})
    lines = answer.body.decode().splitlines()
    assert answer.status == 200
    assert any(line.startswith('lastword_requests_total{code="none",outcome="completed"}') for line in lines)
    assert all(line.startswith(("lastword_", "# HELP lastword_", "# TYPE lastword_")) for line in lines)


async def test_the_documentation_names_every_member() -> None:
    """And no other."""
    text = (Path(__file__).parents[2] / "docs" / "shim.md").read_text("utf-8")
    section = text.partition("### What is open")[2].partition("\n#")[0]
    async with serving(Guarded(), engine=Counting()) as server, generating(server, "x"):
        (entry,) = await requests(server)
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(entry)
