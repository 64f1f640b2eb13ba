"""`/lastword/requests`: a caller sees what is his own and nothing else, whatever the engine thinks of keys."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from tests.shim.apps import CHAT, WHOLE, Message, Receive, Scope, Send, answering
from tests.shim.engines import Counting
from tests.shim.guarded import LIST, A, B, Guarded, generating, get, requests
from tests.shim.wire import serving

from lastword_shim import Shim
from lastword_shim.endpoints import listing

pytestmark = pytest.mark.anyio


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


async def test_a_thousand_open_requests_are_listed_quickly() -> None:
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
