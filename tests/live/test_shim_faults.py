"""Failures planted in real vLLM, an API key, and the clamp policy: one server for all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live.ahead import shared_server
from tests.live.asking import CHAT, COMPLETIONS, CONTEXT, LONG, ask, chat
from tests.live.vllm_server import VllmServer
from tests.shim.wire import Answer, conforms

KEY = "sk-planted-key-0123456789"
SECRETS = [
    "/usr/lib/python3.11/site-packages/vllm/v1/engine/core.py",
    'File "/opt/vllm/model_runner.py", line 1234, in execute_model',
    "Traceback (most recent call last):",
    "CUDA error: device-side assert triggered",
    "<vllm.v1.engine.async_llm.AsyncLLM object at 0x7f3a12345678>",
    "0x7f3a12345678",
    "tcp://10.1.2.3:5555",
]


# The shim between vLLM and a middleware that makes its engine client fail on demand.
faulty = shared_server(
    "faulty",
    args=(
        *("--middleware", "faults.Faults", "--api-key", KEY),
        *("--trust-request-chat-template", "--allowed-origins", '["https://a.example"]'),
    ),
    env={
        "PYTHONPATH": str(Path(__file__).parent),
        "LASTWORD_CONTEXT_POLICY": "clamp",
        "LASTWORD_MAX_BODY_BYTES": "100000",
    },
)


@pytest.fixture(autouse=True)
def records_conform(faulty: VllmServer) -> Iterator[None]:
    """All records obey the schema, and none has a key or a prompt in it; nor does the log."""
    faulty.step_back()
    faulty.wait_idle()
    before = len(faulty.records())
    yield
    for record in faulty.records()[before:]:
        conforms(record, "record")
    for text in (faulty.record_file.read_text("utf-8"), faulty.log_text()):
        assert "PROMPT-TEXT" not in text
        assert KEY not in text.partition("non-default args")[0] + text.partition("Available routes")[2]


def failing(server: VllmServer, body: dict[str, Any], path: str, **fault: object) -> Answer:
    headers = {"authorization": f"Bearer {KEY}", "x-fault": json.dumps(fault), "x-request-id": "planted-1"}
    return ask(server, body, path=path, headers=headers)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("at", ["call", "first", "later"])
@pytest.mark.parametrize("kind", ["RuntimeError", "ValueError"])
@pytest.mark.parametrize("stream", [True, False])
def test_exceptions_of_the_engine_tell_the_caller_nothing_and_the_log_everything(
    faulty: VllmServer, path: str, at: str, kind: str, stream: bool
) -> None:
    """Before vLLM's 200, after it, and in the middle; vLLM itself answers with the exception's text."""
    text = "it broke: " + " ; ".join(SECRETS)
    body = chat("PROMPT-TEXT") if path == CHAT else {**LONG, "prompt": "PROMPT-TEXT", "max_tokens": 8, "min_tokens": 8}
    start = faulty.log.stat().st_size
    answer = failing(faulty, {**body, "stream": stream}, path, **{"at": at, "raise": kind, "text": text})
    if stream and at == "later":
        assert answer.event_error["code"] in {"internal_server_error", "invalid_request_error"}
    else:
        assert answer.error["code"] in {"internal_server_error", "invalid_request_error", "out_of_memory"}
    for secret in SECRETS:
        assert secret not in answer.body.decode()
        assert secret in faulty.log_text(start).replace("\\\\", "\\"), secret
    assert "request_id=planted-1" in faulty.log_text(start)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_an_abort_by_the_engine_is_no_success(faulty: VllmServer, path: str) -> None:
    """Bare vLLM: finish_reason `abort`, then `[DONE]`, and 200."""
    silent = faulty.metric("lastword_stream_without_done_total")
    body = LONG if path == COMPLETIONS else chat(max_tokens=500, min_tokens=500)
    answer = failing(faulty, {**body, "stream": True}, path, at="later", abort=True)
    assert answer.event_error["code"] == "generation_aborted"
    assert faulty.metric("lastword_stream_without_done_total") == silent + 1


def test_a_template_that_fails_is_the_callers(faulty: VllmServer) -> None:
    """It escapes all of vLLM's handlers but the outermost, so bare vLLM's answer has no CORS headers either."""
    for template in ("{{ nothing.at.all }}", "{% if %}"):
        body = {**chat("PROMPT-TEXT"), "chat_template": template}
        answer = ask(faulty, body, path=CHAT, headers={"authorization": f"Bearer {KEY}", "origin": "https://a.example"})
        assert (answer.status, answer.error["code"]) == (400, "invalid_request_error")
        assert answer.header("access-control-allow-origin") == "https://a.example"


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": KEY}])
def test_strangers_learn_nothing_and_cost_nothing(faulty: VllmServer, headers: dict[str, str]) -> None:
    """401 before anything is read, whatever else is wrong with the request."""
    for body in (chat(), b"{", b"x" * 200_000):
        answer = ask(faulty, body, path=CHAT, headers={**headers, "request-timeout-ms": "x"})
        assert (answer.status, answer.error["code"]) == (401, "unauthorized")
        assert answer.header("x-should-retry") == "false"
    known = {"authorization": f"Bearer {KEY}"}
    assert ask(faulty, b"x" * 200_000, path=CHAT, headers=known).error["code"] == "request_too_large"
    assert ask(faulty, b"{", path=CHAT, headers=known).error["code"] == "invalid_request_error"


def test_the_clamp_policy_serves_what_fits_and_tells_it(faulty: VllmServer) -> None:
    """Bare vLLM's behaviour, but said."""
    for stream in (True, False):
        body = {**LONG, "prompt": "a" * (CONTEXT - 48), "max_tokens": 500, "min_tokens": 0, "stream": stream}
        answer = ask(faulty, body, headers={"authorization": f"Bearer {KEY}", "x-request-id": f"clamped-{stream}"})
        assert (answer.status, answer.header("x-lastword-effective-max-tokens")) == (200, "48")
        (record,) = faulty.wait_records(request_id=f"clamped-{stream}")
        assert (record["max_tokens"], record["effective_max_tokens"], record["completion_tokens"]) == (500, 48, 48)
