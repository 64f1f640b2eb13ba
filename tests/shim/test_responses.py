"""The Responses endpoint: the terminals that engines leave out, given in its own words."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.shim.apps import EVENTS, App, Receive, Scope, Send, answering, read_body, streaming, until_gone
from tests.shim.events import (
    BEGUN,
    DONE_ITEM,
    FAILED,
    GOOD,
    RESPONSES,
    TEXT,
    WHOLE,
    completed,
    engine_says,
    last_word,
    named,
    read_events,
    response,
)
from tests.shim.inprocess import answered
from tests.shim.wire import serving

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("size", [1, 50, 100_000])
async def test_a_good_stream_leaves_byte_for_byte(size: int) -> None:
    """Comments too, and nothing after the terminal; `[DONE]` is no word of this protocol."""
    sent = b": keep-alive\n\n" + GOOD
    parts = [sent[at : at + size] for at in range(0, len(sent), size)]
    answer, record = await answered(streaming(*parts, b"data: [DONE]\n\n"), path=RESPONSES)
    assert answer.body == sent
    assert (record["outcome"], record["finish_reasons"]) == ("completed", ["stop"])
    assert (record["prompt_tokens"], record["completion_tokens"]) == (3, 2)


async def test_an_answer_that_max_tokens_cut_ends_incomplete() -> None:
    """vLLM says `response.completed` of it; the number, the text and the usage stay."""
    for details in ({"reason": "max_output_tokens"}, None):
        app = streaming(WHOLE, completed("incomplete", incomplete_details=details))
        answer, record = await answered(app, path=RESPONSES)
        assert answer.body.startswith(WHOLE)
        name, data = read_events(answer.body)[-1]
        assert (name, data["type"], data["sequence_number"]) == ("response.incomplete", "response.incomplete", 9)
        assert data["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
        assert data["response"]["output"] == [DONE_ITEM]
        assert (record["outcome"], record["finish_reasons"]) == ("completed", ["length"])


async def test_an_engine_that_says_incomplete_itself_is_passed_on() -> None:
    """Byte for byte."""
    end = named("response.incomplete", sequence_number=9, response=response("incomplete"))
    async with serving(streaming(WHOLE, end)) as server:
        assert (await server.ask(path=RESPONSES)).body == WHOLE + end


BAD_ENDINGS: dict[str, tuple[list[Any], str, int]] = {
    "exception": ([BEGUN, RuntimeError("/root/secret")], "internal_server_error", 6),
    "body ends": ([BEGUN], "generation_aborted", 6),
    "half an event": ([BEGUN, completed()[:40]], "generation_aborted", 6),
    "done instead": ([BEGUN, b"data: [DONE]\n\n"], "generation_aborted", 6),
    "failed": ([BEGUN, FAILED, completed()], "internal_server_error", 10),
    "error event": ([BEGUN, named("error", code="x", message="no", sequence_number=6)], "internal_server_error", 7),
    "vLLM's own error": (
        [BEGUN, b'event: unknown\ndata: {"error":{"message":"no","type":"InternalServerError","code":500}}\n\n'],
        "internal_server_error",
        7,
    ),
    "cancelled": ([BEGUN, completed("cancelled")], "generation_aborted", 10),
    "cancelled event": ([BEGUN, named("response.cancelled", response=response("cancelled"))], "generation_aborted", 7),
    "completed, but failed": ([BEGUN, completed("failed")], "generation_aborted", 10),
    "completed, but in progress": ([BEGUN, completed("in_progress")], "internal_server_error", 10),
    "completed, but queued": ([BEGUN, completed("queued")], "internal_server_error", 10),
    "incomplete, but in progress": (
        [BEGUN, named("response.incomplete", sequence_number=6, response=response("in_progress"))],
        "internal_server_error",
        7,
    ),
    "incomplete, but completed": (
        [BEGUN, named("response.incomplete", sequence_number=6, response=response("completed"))],
        "internal_server_error",
        7,
    ),
    "completed, with an error": (
        [BEGUN, completed(error={"code": "server_error", "message": "/root/x"})],
        "internal_server_error",
        10,
    ),
    "completed, an error beside it": (
        [
            BEGUN,
            named("response.completed", sequence_number=6, response=response("completed"), error={"message": "no"}),
        ],
        "internal_server_error",
        7,
    ),
    "completed, of nothing": ([BEGUN, named("response.completed", sequence_number=6)], "internal_server_error", 7),
    "an error in a delta": (
        [
            BEGUN,
            named("response.output_text.delta", sequence_number=6, delta="", error={"message": "/root/x"}),
            completed(),
        ],
        "internal_server_error",
        7,
    ),
    "failed, of nothing": ([BEGUN, named("response.failed", sequence_number=6), completed()], "generation_aborted", 7),
    "no JSON": ([BEGUN, b"event: response.completed\ndata: {oops\n\n"], "internal_server_error", 7),
    "no object": ([BEGUN, b"event: response.completed\ndata: 7\n\n"], "internal_server_error", 7),
}


@pytest.mark.parametrize(("steps", "code", "number"), BAD_ENDINGS.values(), ids=BAD_ENDINGS)
async def test_a_bad_ending_becomes_one_response_failed(steps: list[Any], code: str, number: int) -> None:
    """Built from what the stream told of the response, and numbered after the last event; nothing follows it."""
    answer, record = await answered(streaming(*steps), path=RESPONSES)
    name, data = last_word(answer)
    assert name == "response.failed"
    assert data["response"]["status"] == "failed"
    assert (data["response"]["id"], data["response"]["model"], data["response"]["created_at"]) == ("resp_1", "m", 1)
    assert data["response"]["error"] == data["error"]
    assert (data["error"]["code"], data["error"]["request_id"]) == (code, answer.header("x-request-id"))
    assert data["sequence_number"] == number
    assert b"/root" not in answer.body
    assert (record["outcome"], record["error_code"], record["http_status"]) == ("failed", code, 200)


async def test_finished_items_are_not_lost_in_what_failed() -> None:
    """The response that the stream began with has none; those that came since are its output."""
    async with serving(streaming(WHOLE, RuntimeError("no"))) as server:
        _, data = last_word(await server.ask(path=RESPONSES))
    assert data["response"]["output"] == [DONE_ITEM]
    assert data["sequence_number"] == 9


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_the_engine_gave_up_is_no_success(stream: bool) -> None:
    """vLLM calls it completed; only its engine knows."""
    app = streaming(WHOLE, completed()) if stream else answering(response("completed", output=[DONE_ITEM]))
    answer, record = await answered(engine_says(app, "abort"), {"model": "m", "stream": stream}, path=RESPONSES)
    if stream:
        _, data = last_word(answer)
        assert data["response"]["output"] == [DONE_ITEM]
        assert data["error"]["code"] == "generation_aborted"
    else:
        assert (answer.status, answer.error["code"]) == (503, "generation_aborted")
    assert (record["error_code"], record["finish_reasons"]) == ("generation_aborted", ["abort"])


async def test_other_endings_of_the_engine_are_none_of_its_faults() -> None:
    """Neither what it said of tools nor of repetition."""
    async with serving(engine_says(streaming(GOOD), "stop", "length", "repetition", "tool_calls")) as server:
        assert (await server.ask(path=RESPONSES)).body == GOOD


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (response("completed", output=[DONE_ITEM]), 200, None),
        (response("incomplete"), 200, None),
        (response("queued"), 200, None),
        (response("in_progress"), 200, None),
        (response("failed", error={"code": "server_error", "message": "/root/x"}), 500, "internal_server_error"),
        (response("failed", error={"code": "rate_limit_exceeded", "message": "no"}), 429, "rate_limit_exceeded"),
        (response("failed"), 503, "generation_aborted"),
        (response("cancelled"), 503, "generation_aborted"),
        (b"", 500, "internal_server_error"),
        (b"null", 500, "internal_server_error"),
        (b"[]", 500, "internal_server_error"),
        (b"{}", 500, "internal_server_error"),
    ],
)
async def test_a_whole_answer_has_the_status_that_it_deserves(body: Any, status: int, code: str | None) -> None:
    """One that goes on in the background has not ended yet."""
    answer, _ = await answered(answering(body), {"model": "m"}, path=RESPONSES)
    assert answer.status == status
    if code is None:
        assert json.loads(answer.body) == body
    else:
        assert answer.error["code"] == code
        assert b"/root" not in answer.body


def hanging(*first: bytes) -> App:
    return streaming(*first, lambda: asyncio.Event().wait())


async def test_a_timer_a_deadline_and_a_shutdown_are_told_as_failed() -> None:
    """Each with its own code, in the protocol's words."""
    async with serving(hanging(BEGUN), idle_timeout=0.2) as server:
        _, data = last_word(await server.ask(path=RESPONSES))
        assert data["error"]["code"] == "generation_stalled"
    async with serving(hanging(BEGUN)) as server:
        _, data = last_word(await server.ask(path=RESPONSES, headers={"request-timeout-ms": "200"}))
        assert (data["error"]["code"], data["sequence_number"]) == ("deadline_exceeded", 6)
    async with serving(hanging(BEGUN)) as server, server.connect(path=RESPONSES) as (reader, _):
        await reader.readuntil(b'"delta": "lo"')
        await server.shim.drain(0.1)
        rest = await reader.read()
    assert b"event: response.failed" in rest
    assert rest.count(b'"code": "server_shutting_down"') == 2


async def test_a_cancellation_is_told_as_failed() -> None:
    """No stock event union has a `response.cancelled`."""
    async with serving(hanging(BEGUN)) as server, server.connect(path=RESPONSES) as (reader, _):
        await reader.readuntil(b'"delta": "lo"')
        (exchange,) = server.shim._core.register._open  # type: ignore[union-attr]
        exchange.cancel()
        rest = await reader.read()
        record = await server.one_record()
    assert b"event: response.failed" in rest
    assert rest.count(b'"code": "cancelled"') == 2
    assert (record["outcome"], record["error_code"]) == ("cancelled", "cancelled")


async def test_before_any_response_the_error_is_flat() -> None:
    """After the hold; within it the error has its own status."""
    async with serving(streaming(0.3, RuntimeError("no")), hold=0.05) as server:
        name, data = last_word(await server.ask(path=RESPONSES))
    assert (name, data["type"], data["sequence_number"]) == ("error", "error", 0)
    assert (data["code"], data["param"]) == ("internal_server_error", None)
    async with serving(streaming(RuntimeError("no"))) as server:
        answer = await server.ask(path=RESPONSES)
        assert (answer.status, answer.error["code"]) == (500, "internal_server_error")


async def test_numbers_are_counted_where_the_server_gives_none() -> None:
    """One for each event that left."""
    begun = named("response.created", response=response()) + named("response.in_progress", response=response())
    async with serving(streaming(begun, RuntimeError("no"))) as server:
        assert last_word(await server.ask(path=RESPONSES))[1]["sequence_number"] == 2


async def test_a_stored_response_is_passed_on_and_what_breaks_it_is_told() -> None:
    """A stream that begins after some events may be empty: nobody here knows when it is whole."""
    async with serving(streaming(TEXT)) as server:
        assert (await server.ask(b"", path=f"{RESPONSES}/resp_1", method="GET")).body == TEXT
    async with serving(streaming(TEXT, RuntimeError("no"))) as server:
        name, data = last_word(await server.ask(b"", path=f"{RESPONSES}/resp_1", method="GET"))
    assert (name, data["error"]["code"]) == ("error", "internal_server_error")


async def test_an_application_that_stops_when_told_leaves_no_task() -> None:
    """A client that goes away ends it."""

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)

        async def answer() -> None:
            await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
            while True:
                await send({"type": "http.response.body", "body": BEGUN, "more_body": True})
                await asyncio.sleep(0.01)

        await until_gone(answer(), receive)

    async with serving(endless) as server:
        async with server.connect(path=RESPONSES) as (reader, _):
            await reader.readuntil(b"delta")
        record = await server.one_record()
    assert (record["error_code"], record["http_status"], record["wasted"]) == ("client_disconnected", 499, True)
