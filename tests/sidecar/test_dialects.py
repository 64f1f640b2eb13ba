"""Errors in the words of each server that may stand behind the sidecar."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.shim.apps import ROLE, chunk
from tests.sidecar.wire import EVENTS_HEAD, LAST_CHUNK, Call, chunked, plain, sidecar, upstream

pytestmark = pytest.mark.anyio
CONTEXT = (
    "This model's maximum context length is 10 tokens. However, you requested 20 tokens "
    "(15 in the messages, 5 in the completion)."
)


def flat(message: str, type_: str, code: int) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": type_, "param": None, "code": code}


def nested(message: str, type_: str, code: object, **more: object) -> dict[str, Any]:
    return {"error": {"message": message, "type": type_, "param": None, "code": code, **more}}


BUSY = "The engine is currently busy and cannot accept new requests"
TOO_LONG = nested("too long", "exceed_context_size_error", 400, n_prompt_tokens=31, n_ctx=20)
ANTHROPIC = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}
DIALECTS: list[tuple[str, int, dict[str, Any] | str, str]] = [
    ("vLLM", 503, nested(BUSY, "Service Unavailable", 503), "queue_overloaded"),
    ("vLLM 0.8", 400, flat(CONTEXT, "BadRequestError", 400), "context_length_exceeded"),
    ("SGLang", 503, flat("The request queue is full.", "HTTPStatus.SERVICE_UNAVAILABLE", 503), "queue_overloaded"),
    ("llama.cpp", 503, nested("Loading model", "unavailable_error", 503), "model_loading"),
    ("llama.cpp", 400, TOO_LONG, "context_length_exceeded"),
    ("TGI", 429, {"error": "Model is overloaded", "error_type": "overloaded"}, "queue_overloaded"),
    ("LiteLLM", 400, nested("litellm.BadRequestError: no", "invalid_request_error", "400"), "invalid_request_error"),
    ("Ollama", 404, nested('model "x" not found, try pulling it first', "not_found_error", None), "model_not_found"),
    ("Dynamo", 529, {"message": "overloaded", "type": "Overloaded", "code": 529}, "queue_overloaded"),
    ("OpenAI", 429, nested("quota", "insufficient_quota", "insufficient_quota"), "quota_exceeded"),
    ("Anthropic", 529, ANTHROPIC, "queue_overloaded"),
    (
        "Envoy",
        503,
        "upstream connect error or disconnect/reset before headers. reset reason: overflow",
        "engine_unavailable",
    ),
    ("nginx", 504, "<html><head><title>504 Gateway Time-out</title></head></html>", "gateway_timeout"),
    ("vLLM's router", 401, {"error": "Unauthorized"}, "unauthorized"),
    ("FastAPI", 404, {"detail": "Not Found"}, "not_found"),
]
NEED_A_STATUS = {"Envoy", "nginx", "vLLM's router", "FastAPI"}


def said(body: dict[str, Any] | str) -> bytes:
    return (body if isinstance(body, str) else json.dumps(body)).encode()


@pytest.mark.parametrize(("who", "status", "body", "code"), DIALECTS)
async def test_as_a_status(who: str, status: int, body: dict[str, Any] | str, code: str) -> None:
    async def handler(call: Call) -> None:
        await call.send(plain(said(body), status=status))

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        assert (await server.ask({"model": "m"})).error["code"] == code


@pytest.mark.parametrize(("who", "status", "body", "code"), [each for each in DIALECTS if each[0] not in NEED_A_STATUS])
async def test_as_an_event_of_a_stream(who: str, status: int, body: dict[str, Any], code: str) -> None:
    """Followed by [DONE], as most of them do, which must not leave."""

    async def handler(call: Call) -> None:
        events = chunked(ROLE, chunk("Hel"), b"data: " + said(body) + b"\n\n", b"data: [DONE]\n\n")
        await call.send(EVENTS_HEAD + events + LAST_CHUNK)

    async with upstream(handler) as engine, sidecar(engine.url) as server:
        assert (await server.ask({"model": "m", "stream": True})).event_error["code"] == code
