"""Every route of real vLLM that generates, and how each of them ends: Responses, Messages, and what is not judged."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from tests.live.ahead import shared_server
from tests.live.asking import CHAT, COMPLETIONS, LONG, MUCH, Asking, ask, chat, read
from tests.live.vllm_server import VllmServer
from tests.shim.events import MESSAGES, RESPONSES, last_word, read_events
from tests.shim.wire import Answer, conforms

EVERY_TOKEN = list(range(320))


def response(**more: Any) -> dict[str, Any]:
    return {"model": "m", "input": "hi", "max_output_tokens": 8, "ignore_eos": True, **more}


def message(**more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "hi"}], **more}


ENDLESS = {RESPONSES: response(max_output_tokens=MUCH), MESSAGES: message(max_tokens=MUCH, temperature=0)}


# With its rarer routes switched on, and faults on demand.
every = shared_server(
    "every",
    gently=False,
    args=(
        *("--middleware", "faults.Faults", "--enable-scale-out", "--sse-keep-alive-interval", "1"),
        *("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
    ),
    env={"PYTHONPATH": str(Path(__file__).parent), "VLLM_ENABLE_RESPONSES_API_STORE": "1"},
)


@pytest.fixture(autouse=True)
def one_record_each(every: VllmServer) -> Iterator[None]:
    every.step_back()
    every.wait_idle()
    before = len(every.records())
    yield
    for record in every.records()[before:]:
        conforms(record, "record")


def failing(server: VllmServer, path: str, *, stream: bool, **fault: object) -> Answer:
    return ask(server, {**ENDLESS[path], "stream": stream}, path=path, headers={"x-fault": json.dumps(fault)})


def record_of(server: VllmServer, answer: Answer) -> dict[str, Any]:
    """Once it is written."""
    (record,) = server.wait_records(1, request_id=answer.header("x-request-id"))
    return record


def error_of(answer: Answer, *, stream: bool) -> dict[str, Any]:
    if not stream or answer.status != 200:
        return answer.error
    error: dict[str, Any] = last_word(answer)[1]["error"]
    return error


def test_a_response_that_ends_by_itself_is_completed(every: VllmServer) -> None:
    """By a stock client's helper, and whole; the record has vLLM's counts."""
    with openai.OpenAI(base_url=every.base_url, api_key="k", max_retries=0) as client:
        stop: dict[str, Any] = {"extra_body": {"stop_token_ids": EVERY_TOKEN}}
        with client.responses.stream(model="m", input="hi", **stop) as stream:
            assert stream.get_final_response().status == "completed"
        whole = client.responses.create(model="m", input="hi", **stop)
    assert (whole.status, whole.usage is not None) == ("completed", True)
    every.wait_for(lambda: len(every.records(endpoint=RESPONSES)) >= 2, "records", 10)
    for record in every.records(endpoint=RESPONSES)[-2:]:
        assert (record["outcome"], record["finish_reasons"], record["completion_tokens"]) == ("completed", ["stop"], 1)


def test_a_response_cut_by_max_tokens_is_incomplete(every: VllmServer) -> None:
    """vLLM's own event says completed."""
    answer = ask(every, response(stream=True), path=RESPONSES)
    events = read_events(answer.body)
    numbers = [data["sequence_number"] for _, data in events]
    assert numbers == list(range(len(events)))
    name, data = events[-1]
    assert (name, data["response"]["status"]) == ("response.incomplete", "incomplete")
    assert data["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert b"response.completed" not in answer.body
    whole = ask(every, response(), path=RESPONSES)
    assert (whole.status, json.loads(whole.body)["status"]) == (200, "incomplete")
    for each in (answer, whole):
        record = record_of(every, each)
        assert (record["outcome"], record["finish_reasons"]) == ("completed", ["length"])
        assert record["completion_tokens"] == 8


@pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
@pytest.mark.parametrize(("at", "stream"), [("later", True), ("queued", True), ("queued", False)])
def test_an_abort_by_the_engine_is_no_success(every: VllmServer, path: str, at: str, stream: bool) -> None:
    """vLLM says completed; of a message, nothing, or end_turn where no token had come."""
    if at == "queued":
        every.signal_engine(signal.SIGSTOP)
    try:
        answer = failing(every, path, stream=stream, at=at, abort=True)
    finally:
        every.signal_engine(signal.SIGCONT)
    assert error_of(answer, stream=stream)["code"] == "generation_aborted"
    assert b"end_turn" not in answer.body
    assert b"response.completed" not in answer.body
    record = record_of(every, answer)
    assert (record["error_code"], record["finish_reasons"]) == ("generation_aborted", ["abort"])


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
@pytest.mark.parametrize("at", ["call", "first", "later"])
def test_an_exception_of_the_engine_is_told_and_tells_nothing(
    every: VllmServer, path: str, stream: bool, at: str
) -> None:
    """vLLM cuts the body of the one, and lets the exception's text out in the other."""
    fault = {"at": at, "raise": "RuntimeError", "text": "/root/models/x at 10.1.2.3: CUDA error"}
    answer = failing(every, path, stream=stream, **fault)
    error = error_of(answer, stream=stream)
    assert error["code"] == "internal_server_error"
    if answer.status != 200:
        assert answer.status == 500
    elif path == RESPONSES:
        assert read_events(answer.body)[-1][1]["response"]["id"].startswith("resp_")
    for secret in (b"/root", b"10.1.2.3", b"CUDA"):
        assert secret not in answer.body


def test_a_message_ends_as_a_stock_client_expects(every: VllmServer) -> None:
    """Streamed and whole, by max_tokens and by a stop sequence."""
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with anthropic.Anthropic(base_url=every.root_url, api_key="k", max_retries=0, timeout=60) as client:
        with client.messages.stream(max_tokens=8, extra_body={"temperature": 0}, **asked) as stream:
            assert stream.get_final_message().stop_reason == "max_tokens"
        whole = client.messages.create(max_tokens=1900, stop_sequences=["a", "e", "i", "o"], **asked)
        assert whole.stop_reason == "stop_sequence"
        every.wait_records(1, request_id=whole._request_id)
        with pytest.raises(anthropic.BadRequestError) as caught:
            client.messages.create(max_tokens=99_999, **asked)
    assert caught.value.body["error"]["code"] == "context_length_exceeded"  # type: ignore[index]
    assert caught.value.request_id is not None
    (refused,) = every.wait_records(1, request_id=caught.value.request_id)
    reasons = [record["finish_reasons"] for record in every.records(endpoint=MESSAGES)[-3:]]
    assert reasons == [["length"], ["stop"], []]
    assert refused["state"] == "rejected"


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (RESPONSES, response(model="other"), 404, "model_not_found"),
        (RESPONSES, response(max_output_tokens=99_999), 400, "context_length_exceeded"),
        (RESPONSES, b"{", 400, "invalid_request_error"),
        (f"{RESPONSES}/resp_unknown/cancel", {}, 404, "not_found"),
        (MESSAGES, message(model="other"), 404, "model_not_found"),
        (MESSAGES, {"model": "m"}, 400, "invalid_request_error"),
        (f"{MESSAGES}/count_tokens", {"model": "m"}, 400, "invalid_request_error"),
        ("/v1/embeddings", {"model": "m", "input": "hi"}, 404, "not_found"),
        ("/v1/audio/transcriptions", {"model": "m"}, 404, "not_found"),
        ("/inference/v1/generate", {"token_ids": [1]}, 400, "invalid_request_error"),
    ],
)
def test_every_refusal_speaks_the_words_of_its_route(
    every: VllmServer, path: str, body: Any, status: int, code: str
) -> None:
    """A route that this model has not, one that it has, and bodies that are none."""
    answer = ask(every, body, path=path)
    assert (answer.status, answer.error["code"]) == (status, code)
    assert (json.loads(answer.body).get("type") == "error") is path.startswith(MESSAGES)


@pytest.mark.parametrize("stream", [True, False])
def test_tokens_in_and_out_are_passed_on(every: VllmServer, stream: bool) -> None:
    """vLLM's own route, which nobody judges; it takes its place like any other."""
    body = {
        "model": "m",
        "token_ids": [72, 73],
        "sampling_params": {"max_tokens": 5, "ignore_eos": True},
        "stream": stream,
    }
    answer = ask(every, body, path="/inference/v1/generate")
    assert answer.status == 200
    assert (b"data: [DONE]" in answer.body) is stream
    assert record_of(every, answer)["outcome"] == "completed"


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_two_choices_beams_usage_and_tool_calls_are_passed_on(every: VllmServer, path: str) -> None:
    """Whatever vLLM makes of them, it is whole."""
    asked = chat() if path == CHAT else {**LONG, "max_tokens": 8, "min_tokens": 8}
    several = ask(every, {**asked, "n": 2, "stream": True, "stream_options": {"include_usage": True}}, path=path)
    chunks = [json.loads(event) for event in several.events[:-1]]
    assert several.events[-1] == "[DONE]"
    assert {choice["index"] for each in chunks for choice in each["choices"] if choice["finish_reason"]} == {0, 1}
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 16
    beams = ask(every, {**asked, "min_tokens": 0, "n": 2, "use_beam_search": True, "temperature": 0}, path=path)
    assert (beams.status, len(json.loads(beams.body)["choices"])) == (200, 2)
    assert record_of(every, beams)["outcome"] == record_of(every, several)["outcome"] == "completed"
    if path == CHAT:
        schema = {
            "type": "object",
            "properties": {"a": {"enum": ["x"]}},
            "required": ["a"],
            "additionalProperties": False,
        }
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        choice = {"type": "function", "function": {"name": "f"}}
        called = {**chat(), "max_tokens": 200, "ignore_eos": False, "tools": [tool], "tool_choice": choice}
        for stream in (False, True):  # random weights do not always end what they begin
            answers = (ask(every, {**called, "stream": stream, "seed": seed}, path=CHAT) for seed in range(20))
            answer = next(each for each in answers if b'"tool_calls":[{' in each.body)
            assert answer.status == 200
            assert record_of(every, answer)["outcome"] == "completed"


def test_signs_of_life_pass_while_the_engine_is_silent(every: VllmServer) -> None:
    """vLLM's own comments, which keep proxies from giving up."""
    asking = Asking(every, {**LONG, "stream": True})
    assert asking.begun.wait(20)
    every.signal_engine(signal.SIGSTOP)
    time.sleep(2.5)  # two intervals of silence
    every.signal_engine(signal.SIGCONT)
    asking.goes_on()
    asking.leave()
    answer = asking.wait()
    assert answer.body.count(b": keep-alive") >= 2
    assert b'"error"' not in answer.body


def test_a_background_response_is_stored_streamed_and_cancelled(every: VllmServer) -> None:
    """What vLLM goes on with by itself is not ended by the shim."""
    queued = ask(every, response(background=True), path=RESPONSES)
    assert (queued.status, json.loads(queued.body)["status"]) == (200, "queued")
    path = f"{RESPONSES}/{json.loads(queued.body)['id']}"
    every.wait_for(lambda: json.loads(every.get(path)[1])["status"] == "incomplete", "the stored response", 20)
    streamed = ask(every, response(background=True, stream=True), path=RESPONSES)
    identity = read_events(streamed.body)[0][1]["response"]["id"]
    assert read_events(streamed.body)[-1][0] == "response.incomplete"
    status, again = every.get(f"{RESPONSES}/{identity}?stream=true")
    assert (status, read_events(again.encode())[0][0]) == (200, "response.created")
    running = ask(every, response(background=True, max_output_tokens=MUCH), path=RESPONSES)
    cancelled = ask(every, {}, path=f"{RESPONSES}/{json.loads(running.body)['id']}/cancel")
    assert (cancelled.status, json.loads(cancelled.body)["status"]) == (200, "cancelled")
    every.wait_idle(timeout=10)


def test_a_body_lost_in_an_upgrade_is_told_with_the_remedy(every: VllmServer) -> None:
    """As the JDK's client sends it unless it is told otherwise; vLLM itself says that a field is missing."""
    body = json.dumps(chat()).encode()
    head = (
        f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAB\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", every.port), timeout=10) as connection:
        connection.sendall(head.encode() + body)
        raw = http.client.HTTPResponse(connection)
        raw.begin()
        answer = read(raw)
    assert (answer.status, answer.error["param"]) == (400, "upgrade")
    assert "HTTP_1_1" in answer.error["message"]


@pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
def test_a_deadline_stops_the_engine(every: VllmServer, path: str) -> None:
    """Also on these routes, and the record tells what it cost."""
    asking = Asking(every, {**ENDLESS[path], "stream": True}, path=path, headers={"request-timeout-ms": "6000"})
    answer = asking.wait()
    assert error_of(answer, stream=True)["code"] == "deadline_exceeded"
    every.wait_idle(timeout=10)
    record = record_of(every, answer)
    assert record["error_code"] == "deadline_exceeded"
    assert 0 < record["completion_tokens"] < MUCH


def test_an_engine_that_dies_in_the_middle_ends_both_protocols_honestly(every: VllmServer) -> None:
    """The last test here: it takes the server along."""
    asked = [Asking(every, {**ENDLESS[path], "stream": True}, path=path) for path in (RESPONSES, MESSAGES)]
    for asking in asked:
        assert asking.begun.wait(20)
    time.sleep(0.3)
    every.signal_engine(signal.SIGKILL)
    for asking in asked:
        name, data = last_word(asking.wait(20))
        assert name == ("response.failed" if asking.path == RESPONSES else "error")
        assert (data["error"]["code"], data["error"]["retryable"]) == ("engine_unavailable", True)
