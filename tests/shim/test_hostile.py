"""What applications, servers and crowds do to the shim that they should not."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import Any

import pytest
from tests.shim.apps import (
    CHAT,
    DONE,
    EVENTS,
    JSON,
    Message,
    Receive,
    Scope,
    Send,
    answering,
    chunk,
    read_body,
    streaming,
)
from tests.shim.wire import request, serving

from lastword_shim.protocol.redact import scrub

pytestmark = pytest.mark.anyio

WHOLE = {"id": "c", "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]}
GOOD = chunk("a") + chunk("b", finish="stop") + DONE


def length(size: int, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [*headers, (b"content-length", str(size).encode())]


def scripted(*steps: Message | BaseException) -> Any:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        for step in steps:
            if isinstance(step, BaseException):
                raise step
            await send(step)

    return app


def start(headers: list[tuple[bytes, bytes]], status: int = 200) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(sent: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": sent, "more_body": more}


@pytest.mark.parametrize("declared", [1, 10_000])
async def test_a_whole_answer_has_its_own_length_whatever_the_engine_said(declared: int) -> None:
    sent = json.dumps(WHOLE).encode()
    async with serving(scripted(start(length(declared, JSON)), body(sent))) as server:
        answer = await server.ask({"model": "m"})
        assert (answer.status, answer.body, answer.complete) == (200, sent, True)
        assert answer.header("content-length") == str(len(sent))
        assert (await server.one_record())["outcome"] == "completed"


@pytest.mark.parametrize("declared", [1, len(chunk("a")), 10_000])
async def test_a_stream_that_declared_a_length_still_gets_its_terminal(declared: int) -> None:
    app = scripted(start(length(declared, EVENTS)), body(chunk("a"), more=True), RuntimeError("no more"))
    async with serving(app, hold=0) as server:
        answer = await server.ask()
        assert answer.complete
        assert answer.event_error["code"] == "internal_server_error"
        await server.one_record()
    async with serving(scripted(start(length(declared, EVENTS)), body(GOOD + b"data: more\n\n"))) as server:
        answer = await server.ask()
        assert answer.complete
        assert answer.events[-1] == "[DONE]"
        await server.one_record()


@pytest.mark.parametrize("declared", [1, 10_000])
async def test_a_body_that_belies_its_length_is_cut_and_recorded_as_failed(declared: int) -> None:
    async with serving(scripted(start(length(declared, JSON)), body(b'{"data": []}'))) as server:
        answer = await server.ask({}, path="/v1/embeddings")
        assert not answer.complete
        record = await server.one_record()
        assert (record["outcome"], record["error_code"]) == ("failed", "internal_server_error")


@pytest.mark.parametrize("slow_bodies", [False, True])
@pytest.mark.parametrize(("limits", "served"), [({"max_inflight": 1, "max_queued": 2}, 3), ({"max_queued": 3}, 3)])
async def test_a_crowd_at_one_moment_meets_the_limits(limits: dict[str, Any], served: int, slow_bodies: bool) -> None:
    async with serving(streaming(0.3, GOOD), **limits) as server:
        sent = request({"model": "m", "stream": True}, CHAT, "POST", {})
        head = sent.index(b"\r\n\r\n") + 4

        async def one() -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(sent[:head] if slow_bodies else sent)
            if slow_bodies:
                await asyncio.sleep(0.2)
                writer.write(sent[head:])
            answer = await reader.read()
            writer.close()
            return answer[9:12]

        async with asyncio.timeout(10):
            statuses = Counter(await asyncio.gather(*(one() for _ in range(12))))
        assert statuses == {b"200": served, b"503": 12 - served}
        await server.one_record(12)
        assert server.shim._core is not None
        assert server.shim._core.places.inside == 0


async def test_an_application_that_listens_after_its_answer_hears_that_all_is_over() -> None:
    heard: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await streaming(GOOD)(scope, receive, send)
        heard.append((await receive())["type"])

    async with serving(app, max_inflight=1) as server:
        for _ in range(2):  # and keeps no place
            assert (await server.ask()).events[-1] == "[DONE]"
        async with asyncio.timeout(3):
            while len(heard) < 2:
                await asyncio.sleep(0.01)
    assert heard == ["http.disconnect", "http.disconnect"]


async def test_whoever_gives_up_waiting_for_the_body_does_not_lose_it() -> None:
    bodies: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        looking = asyncio.ensure_future(receive())  # as Starlette's request.is_disconnected() does
        await asyncio.sleep(0.05)
        looking.cancel()
        bodies.append(await read_body(receive))
        await send(start(EVENTS))
        await send(body(GOOD))

    async with serving(app) as server:
        sent = request({"model": "m"}, CHAT, "POST", {})
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sent[:-5])
        await asyncio.sleep(0.2)
        writer.write(sent[-5:])
        async with asyncio.timeout(5):
            assert b" 200 OK" in await reader.readline()
        writer.close()
        await server.one_record()
    assert json.loads(bodies[0]) == {"model": "m"}


@pytest.mark.parametrize("asked", ["4096", 4096.0, "4_096", "4096.0", 4096])
async def test_max_tokens_counts_in_every_form_that_engines_take(asked: object) -> None:
    async with serving(answering(WHOLE)) as server:
        await server.ask({"model": "m", "max_tokens": asked, "stream": "true"})
        record = await server.one_record()
        assert record["max_tokens"] == 4096
        assert record["stream"] is True


async def test_counts_that_are_none_are_not_recorded() -> None:
    for given in (True, -1, 1e400, 2**80, "3"):
        async with serving(
            answering({**WHOLE, "usage": {"prompt_tokens": given, "completion_tokens": given}})
        ) as server:
            await server.ask({"model": "m"})
            record = await server.one_record()
            assert record["prompt_tokens"] is record["completion_tokens"] is None


@pytest.mark.parametrize(("method", "path"), [("OPTIONS", CHAT), ("GET", "/loaded"), ("GET", "/versions/1")])
async def test_only_probes_and_preflights_go_without_a_last_word(method: str, path: str) -> None:
    async with serving(answering({"detail": "Not Found"}, status=404)) as server:
        answer = await server.ask(b"", path=path, method=method)
        assert answer.error["code"] == "not_found"
        await server.one_record()


async def test_a_stream_without_a_content_type_is_one_if_one_was_asked_for() -> None:
    async with serving(scripted(start([]), body(GOOD))) as server:
        answer = await server.ask()
        assert answer.body == GOOD


async def test_the_record_of_one_that_is_given_up_says_what_the_wire_said() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        await send(start(EVENTS))
        await send(body(chunk("a"), more=True))
        await send(body(b"", more=False))
        until = asyncio.get_running_loop().time() + 4
        while (left := until - asyncio.get_running_loop().time()) > 0:  # does not stop
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                continue

    async with serving(app, hold=0) as server:
        asking = asyncio.create_task(server.ask())
        await asyncio.sleep(0.3)
        await server.shim.drain(0)
        answer = await asking
        assert answer.event_error["code"] == (await server.one_record())["error_code"] == "generation_aborted"
        await asyncio.sleep(2)


@pytest.mark.parametrize("ending", ["deadline_exceeded", "client_disconnected"])
async def test_an_application_that_only_ever_sends_does_not_stop_the_server(ending: str) -> None:
    """It waits for nothing else, and all others must have their time: its own client too, who leaves."""
    began, sent = time.monotonic(), 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent
        await read_body(receive)
        await send(start(EVENTS))
        while time.monotonic() < began + 8:
            await send(body(chunk("word"), more=True))
            sent += 1
        sent = -1

    async with serving(app) as server:
        if ending == "deadline_exceeded":
            answer = await server.ask(headers={"request-timeout-ms": "200"})
            assert answer.event_error["code"] == ending
        else:
            async with server.connect() as (reader, _):
                assert await reader.read(1)
        assert (await server.one_record())["error_code"] == ending
    assert sent > 0
    assert time.monotonic() < began + 5


@pytest.mark.parametrize(
    "planted",
    [
        "file:///root/secret/model",
        "C:/Users/someone/models/x",
        "[::1]:8000",
        "fe80::1",
        "2001:db8:0:0:0:0:0:1",
        "../../etc/shadow",
        "./models/private",
        "//server/share/model",
    ],
)
def test_paths_and_addresses_in_any_notation_are_scrubbed(planted: str) -> None:
    said = scrub(f"The value at {planted} is wrong, and 12:30:45 is a time; see https://example.org/a/b.")
    assert said is not None
    assert planted not in said
    assert said.endswith(" is wrong, and 12:30:45 is a time; see https://example.org/a/b.")


@pytest.mark.parametrize(("status", "kept"), [(400, {"n": 1, "hint": "a word"}), (500, {"n": 1})])
async def test_details_of_the_engines_own_are_numbers_and_where_they_help_words(status: int, kept: object) -> None:
    said = {
        "message": "no",
        "code": status,
        "details": {"n": 1, "hint": "a word", "/root/secret": 2, "at": ["/root/x"]},
    }
    async with serving(answering({"error": said}, status=status)) as server:
        assert (await server.ask()).error["details"] == kept


@pytest.mark.parametrize(
    ("path", "opening", "content"),
    [
        ("/v1/responses", "response.created", "response.output_text.delta"),
        ("/v1/messages", "message_start", "content_block_delta"),
    ],
)
async def test_opening_events_are_no_tokens(path: str, opening: str, content: str) -> None:
    def event(kind: str, *, named: bool) -> bytes:
        return (f"event: {kind}\n" if named else "").encode() + f'data: {{"type": "{kind}"}}\n\n'.encode()

    for named in (True, False):
        first = event(opening, named=named)
        async with serving(streaming(first, 5), hold=0, first_token_timeout=0.6, idle_timeout=0.2) as server:
            answer = await server.ask({"model": "m", "stream": True}, path=path)
            assert b'"first_token_timeout"' in answer.body
            assert (await server.one_record())["time_to_first_token_ms"] is None
        tokens = event(content, named=named)
        async with serving(streaming(first, tokens, 5), hold=0, first_token_timeout=0.6, idle_timeout=0.2) as server:
            answer = await server.ask({"model": "m", "stream": True}, path=path)
            assert b'"generation_stalled"' in answer.body
