"""The shim on real vLLM, on one shared server: what it refuses, what it says, and what it notices."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import openai
import pytest
from tests.live.asking import CHAT, COMPLETIONS, CONTEXT, GENERATED, LONG, MUCH, Asking, ask, chat, connected, started
from tests.live.vllm_server import VllmServer
from tests.shim.wire import conforms

GRAMMAR: dict[str, Any] = {"structured_outputs": {"regex": "(((("}}


@pytest.fixture(autouse=True)
def records_conform(vllm: VllmServer) -> Any:
    """Each test begins with an idle server, and all of its records obey the schema."""
    vllm.step_back()
    vllm.wait_idle()
    before = len(vllm.records())
    yield
    for record in vllm.records()[before:]:
        conforms(record, "record")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("path", "body"),
    [(CHAT, chat()), (COMPLETIONS, {"model": "m", "prompt": "hi", "max_tokens": 8, "ignore_eos": True})],
)
def test_a_good_answer_is_complete(vllm: VllmServer, path: str, body: dict[str, Any], stream: bool) -> None:
    """One `[DONE]`, the client's request id, the engine's token counts."""
    request_id = f"good-{stream}-{path.count('/')}"
    answer = ask(vllm, {**body, "stream": stream}, path=path, headers={"x-request-id": request_id})
    assert (answer.status, answer.header("x-request-id")) == (200, request_id)
    if stream:
        assert answer.events.count("[DONE]") == 1
        assert answer.events[-1] == "[DONE]"
    ids = answer.events[0] if stream else answer.body.decode()
    assert f"cmpl-{request_id}-" in json.loads(ids)["id"]
    (record,) = vllm.wait_records(request_id=request_id)
    assert (record["outcome"], record["completion_tokens"], record["finish_reasons"]) == ("completed", 8, ["length"])
    assert (record["prompt_tokens"], record["effective_max_tokens"]) == (20 if path == CHAT else 2, 8)
    assert record["queue_time_ms"] <= record["time_to_first_token_ms"] <= record["total_time_ms"]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a_grammar_that_cannot_be_is_refused_with_its_true_status(vllm: VllmServer, path: str) -> None:
    """Bare vLLM: 200, an error event, `[DONE]`."""
    body = chat(stream=True, **GRAMMAR) if path == CHAT else {"model": "m", "prompt": "x", "stream": True, **GRAMMAR}
    answer = ask(vllm, body, path=path)
    assert (answer.status, answer.error["code"]) == (400, "invalid_request_error")
    assert "unclosed group" in answer.error["message"]
    (record,) = vllm.wait_records(request_id=answer.error["request_id"])
    assert record["state"] == "rejected"


@pytest.mark.parametrize(
    ("path", "body", "prompt_tokens"),
    [
        (COMPLETIONS, {"prompt": "a" * 1800, "max_tokens": MUCH}, 1800),
        (COMPLETIONS, {"prompt": [65] * 1800, "max_tokens": MUCH}, 1800),
        (COMPLETIONS, {"prompt": [[65], [66] * 1800], "max_tokens": MUCH}, 1800),
        (CHAT, {"messages": [{"role": "user", "content": "a" * 1800}], "max_tokens": MUCH}, 1818),
        (CHAT, {"messages": [{"role": "user", "content": "a" * 1800}], "max_completion_tokens": MUCH}, 1818),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_what_does_not_fit_the_context_never_reaches_the_queue(
    vllm: VllmServer, path: str, body: dict[str, Any], prompt_tokens: int, stream: bool
) -> None:
    """With the numbers; bare vLLM cuts silently."""
    counters = ("vllm:prompt_tokens_total", GENERATED, "vllm:request_success_total")
    before = [vllm.metric(name) for name in counters]
    answer = ask(vllm, {"model": "m", "stream": stream, **body}, path=path)
    assert (answer.status, answer.error["code"], answer.error["param"]) == (
        400,
        "context_length_exceeded",
        "max_tokens",
    )
    details = answer.error["details"]
    assert (details["prompt_tokens"], details["max_tokens"], details["max_model_len"]) == (prompt_tokens, MUCH, CONTEXT)
    assert [vllm.metric(name) for name in counters] == before
    (record,) = vllm.wait_records(request_id=answer.error["request_id"])
    assert (record["state"], record["max_tokens"], record["effective_max_tokens"]) == ("rejected", MUCH, None)


def test_what_fits_exactly_is_served_and_a_prompt_too_long_by_itself_is_named_so(vllm: VllmServer) -> None:
    """The edge; and vLLM's own refusals become the same code, with numbers."""
    assert ask(vllm, {"model": "m", "prompt": "a" * (CONTEXT - 8), "max_tokens": 8, "ignore_eos": True}).status == 200
    for prompt in ("a" * 2 * CONTEXT, [65] * CONTEXT):
        error = ask(vllm, {"model": "m", "prompt": prompt, "max_tokens": 5}).error
        assert (error["code"], error["details"]["max_model_len"]) == ("context_length_exceeded", CONTEXT)
    assert (
        ask(vllm, {"model": "m", "prompt": "a" * 100}).status == 200
    )  # no explicit max_tokens, nothing to hold against it


@pytest.mark.parametrize(
    ("body", "path", "status", "code"),
    [
        (b"{", CHAT, 400, "invalid_request_error"),
        (b"[]", CHAT, 400, "invalid_request_error"),
        ({"model": "m"}, CHAT, 400, "invalid_request_error"),
        (chat(temperature=9), CHAT, 400, "invalid_request_error"),
        (chat(n="many"), CHAT, 400, "invalid_request_error"),
        ({**chat(), "model": "x"}, CHAT, 404, "model_not_found"),
        ({}, "/v1/nothing", 404, "not_found"),
        ({}, "/v1/models", 405, "method_not_allowed"),
        ({"model": "m", "input": "x"}, "/v1/embeddings", 404, "not_found"),
    ],
)
def test_every_refusal_has_the_contracts_shape(
    vllm: VllmServer, body: object, path: str, status: int, code: str
) -> None:
    """Whoever inside of vLLM says it; messages tell nothing of the server."""
    answer = ask(vllm, body, path=path)
    assert (answer.status, answer.error["code"]) == (status, code)
    for secret in ("/root", "site-packages", "vllm.", "0x", "Traceback"):
        assert secret not in answer.error["message"]
    assert len(vllm.wait_records(request_id=answer.error["request_id"])) == 1


def test_probes_are_left_alone(vllm: VllmServer) -> None:
    """And the shim's metrics stand on vLLM's own page."""
    assert vllm.get("/health") == (200, "")
    assert vllm.get("/v1/models")[0] == 200
    page = vllm.get("/metrics")[1]
    for name in (
        "lastword_requests_total",
        "lastword_stream_without_done_total",
        "lastword_wasted_tokens_total",
        "lastword_wasted_seconds_total",
        "lastword_queue_time_seconds_bucket",
        "lastword_generation_time_seconds_bucket",
        "vllm:num_requests_running",
    ):
        assert name in page


def stopped(vllm: VllmServer) -> None:
    """Generation has ended: nothing runs, and no token comes in a second."""
    vllm.wait_idle(timeout=5)
    before = vllm.metric(GENERATED)
    time.sleep(1)
    assert vllm.metric(GENERATED) == before


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_stops_the_generation(vllm: VllmServer, stream: bool) -> None:
    """Streaming or not: one record that says so, and the tokens that nobody read are counted."""
    request_id = f"gone-{stream}"
    wasted = vllm.metric("lastword_wasted_tokens_total")
    before = vllm.metric(GENERATED)
    with connected(vllm, {**LONG, "stream": stream, "n": 4}, headers={"x-request-id": request_id}):
        vllm.wait_for(lambda: vllm.metric(GENERATED) > before + 20, "generation")
    (record,) = vllm.wait_records(request_id=request_id, timeout=3)
    stopped(vllm)
    assert (record["error_code"], record["http_status"], record["outcome"]) == ("client_disconnected", 499, "cancelled")
    assert (record["client_disconnected"], record["disconnect_phase"], record["wasted"]) == (True, "generating", True)
    assert record["tokens_at_disconnect"] > 0
    assert 0 <= record["tokens_after_disconnect"] < 200
    assert record["completion_tokens"] == record["tokens_at_disconnect"] + record["tokens_after_disconnect"]
    assert record["generation_time_after_disconnect_ms"] < 1000
    assert vllm.metric("lastword_wasted_tokens_total") - wasted == record["completion_tokens"]
    assert len(vllm.records(request_id=request_id)) == 1


def test_a_client_that_leaves_the_queue_disturbs_nobody(vllm: VllmServer) -> None:
    """Eight run, the ninth waits and leaves; the eight go on. The engine stands still meanwhile: it may be fast."""
    survivor = started(vllm, stream=True, n=8)
    vllm.signal_engine(signal.SIGSTOP)
    try:
        with connected(vllm, {**LONG, "stream": True}, headers={"x-request-id": "gone-queued"}):
            time.sleep(
                1
            )  # nobody can tell from outside when the engine has been asked; the record below says that it was
        (record,) = vllm.wait_records(request_id="gone-queued", timeout=5)
    finally:
        vllm.signal_engine(signal.SIGCONT)
    assert (record["disconnect_phase"], record["completion_tokens"], record["wasted"]) == ("queued", 0, False)
    assert record["prompt_tokens"] is not None
    survivor.goes_on()
    survivor.leave()
    vllm.wait_idle(timeout=5)


def test_a_deadline_of_the_caller_ends_the_generation(vllm: VllmServer) -> None:
    """As an event in a stream that has begun, as a status else; the engine stops both times."""
    stream = ask(vllm, {**LONG, "stream": True, "n": 8}, headers={"request-timeout-ms": "8000"})
    assert stream.event_error["code"] == "deadline_exceeded"
    stopped(vllm)
    whole = ask(vllm, {**LONG, "n": 8}, headers={"request-timeout-ms": "2000"})
    assert (whole.status, whole.error["code"]) == (504, "deadline_exceeded")
    assert whole.header("x-should-retry") == "false"
    stopped(vllm)


def test_many_requests_at_once_each_get_their_own_last_word(vllm: VllmServer) -> None:
    """Good, bad and cut short side by side, with ids that the clients share."""
    asking = [
        Asking(vllm, {**LONG, "max_tokens": 40, "min_tokens": 40, "stream": number % 2 == 0}) for number in range(12)
    ]
    bad = [Asking(vllm, {"model": "m", "prompt": "x", "stream": True, **GRAMMAR}) for _ in range(6)]
    assert {one.wait().status for one in asking} == {200}
    assert {one.wait().error["code"] for one in bad} == {"invalid_request_error"}


class TestStockClient:
    """What an unchanged openai package makes of it: the right types, and no pointless retry."""

    @pytest.fixture
    def client(self, vllm: VllmServer) -> Any:
        with openai.OpenAI(base_url=vllm.base_url, api_key="none", timeout=30) as client:
            yield client

    def requests(self, vllm: VllmServer, start: int) -> int:
        return vllm.log_text(start).count('"POST /v1/')

    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize(
        ("options", "error", "code"),
        [
            ({"extra_body": GRAMMAR}, openai.BadRequestError, "invalid_request_error"),
            ({"max_tokens": 99_999}, openai.BadRequestError, "context_length_exceeded"),
            ({"model": "nope"}, openai.NotFoundError, "model_not_found"),
            ({"temperature": 9}, openai.BadRequestError, "invalid_request_error"),
        ],
    )
    def test_fixable_errors_are_typed_and_sent_once(
        self,
        vllm: VllmServer,
        client: openai.OpenAI,
        options: dict[str, Any],
        error: type[openai.APIStatusError],
        code: str,
        stream: bool,
    ) -> None:
        """Early enough to have a status, streams included."""
        start = vllm.log.stat().st_size
        with pytest.raises(error) as caught:
            client.chat.completions.create(
                **{"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream, **options}
            )
        assert caught.value.code == code
        assert caught.value.request_id
        assert self.requests(vllm, start) == 1

    def test_an_error_after_the_start_raises_in_the_loop(self, vllm: VllmServer, client: openai.OpenAI) -> None:
        """Once, with the contract's code, and what came before is not sent again."""
        start = vllm.log.stat().st_size
        seen = 0
        stream = client.completions.create(
            model="m",
            prompt="x",
            max_tokens=MUCH,
            stream=True,
            n=8,
            extra_body={"min_tokens": MUCH},
            extra_headers={"request-timeout-ms": "8000"},
        )
        with pytest.raises(openai.APIError) as caught:
            for _ in stream:
                seen += 1
        assert caught.value.code == "deadline_exceeded"
        assert seen > 0
        assert self.requests(vllm, start) == 1

    def test_a_good_stream_reads_as_ever(self, client: openai.OpenAI) -> None:
        """Nothing of the shim shows."""
        stream = client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hi"}],
            max_tokens=8,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
        assert chunks[-1].usage is not None
        assert chunks[-2].choices[0].finish_reason in {"length", "stop"}
