"""Every error that leaves, in the contract's shape and with nothing of the machine in it; and what is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from tests.shim.apps import COMPLETIONS, JSON, WHOLE, Receive, Scope, Send, answering, streaming
from tests.shim.engines import Counting
from tests.shim.wire import serving

from lastword._classify import ErrorInfo, classify_response

pytestmark = pytest.mark.anyio


def vllm_error(message: str, type_: str, code: int, *, param: str | None = None) -> bytes:
    return json.dumps({"error": {"message": message, "type": type_, "param": param, "code": code}}).encode()


DIALECTS: list[tuple[int, bytes, int, str]] = [
    (401, b'{"error":"Unauthorized"}', 401, "unauthorized"),
    (404, b'{"detail":"Not Found"}', 404, "not_found"),
    (405, b'{"detail":"Method Not Allowed"}', 405, "method_not_allowed"),
    (404, vllm_error("The model `x` does not exist.", "NotFoundError", 404, param="model"), 404, "model_not_found"),
    (422, vllm_error("no image", "UnprocessableEntityError", 422), 400, "invalid_request_error"),
    (503, vllm_error("currently busy and cannot accept new requests", "Service Unavailable", 503), 503, "queue_overloaded"),
    (500, vllm_error("EngineCore encountered an issue.", "InternalServerError", 500), 503, "engine_unavailable"),
    (500, vllm_error("", "InternalServerError", 500), 500, "internal_server_error"),
    (503, b"", 503, "engine_unavailable"),
    (502, b"<html><title>502 Bad Gateway</title></html>", 502, "bad_gateway"),
    (418, b"short and stout", 400, "invalid_request_error"),
    (400, b'{"error":{"message":"odd","code":"FancyCode","category":"fixable"}}', 400, "invalid_request_error"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "expected", "code"), DIALECTS)
async def test_every_dialect_becomes_the_contracts(status: int, body: bytes, expected: int, code: str) -> None:
    """On the routes that are followed and on those that are not."""
    async with serving(
        answering(body, status=status, headers=[(b"allow", b"POST"), (b"x-request-id", b"theirs")])
    ) as server:
        for path in ("/v1/chat/completions", "/v1/embeddings"):
            answer = await server.ask({"model": "m"}, path=path, headers={"x-request-id": "abc-1"})
            assert (answer.status, answer.error["code"]) == (expected, code)
            assert answer.error["request_id"] == "abc-1"
            assert answer.header("allow") == "POST"
            assert answer.header("content-type") == "application/json"


@pytest.mark.parametrize(
    ("message", "details"),
    [
        ("n must be at least 1, got -3. (value=-3)", {"numbers": [1, -3]}),
        ("temperature must be between 0 and 2.5, not 7", {"numbers": [0, 2.5, 7]}),
        ("no grammar for v2 of gpt-4, see chapter 007", {}),
        (
            (
                "This model's maximum context length is 2048 tokens. However, your prompt contains 20480 characters, "
                "more than 18432, the upper bound."
            ),
            {"max_model_len": 2048, "prompt_characters": 20480, "numbers": [18432]},
        ),
    ],
)
async def test_numbers_that_the_engine_tells_are_in_the_details(message: str, details: dict[str, Any]) -> None:
    """ERR-3: under their names where the table knows them, else as a list; parts of names are no numbers."""
    async with serving(answering(vllm_error(message, "BadRequestError", 400), status=400)) as server:
        error = (await server.ask({"model": "m"})).error
    assert error["message"] == message
    assert error["details"] == details


async def test_a_whole_answer_leaves_byte_for_byte() -> None:
    """With one request id, and its own headers."""
    body = json.dumps(WHOLE, indent=3).encode()
    async with serving(answering(body, headers=[*JSON, (b"x-own", b"1"), (b"x-request-id", b"theirs")])) as server:
        answer = await server.ask({"model": "m"}, headers={"x-request-id": "abc"})
    assert (answer.body, answer.header("x-own"), answer.header("x-request-id")) == (body, "1", "abc")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"choices": [{"index": 0, "message": {"content": ""}, "finish_reason": "abort"}]}, 503, "generation_aborted"),
        ({"choices": [{"index": 0, "text": "x", "finish_reason": None}]}, 503, "generation_aborted"),
        ({"choices": []}, 503, "generation_aborted"),
        ({"error": {"message": "late", "code": 400, "type": "BadRequestError"}}, 400, "invalid_request_error"),
        ({"choices": [{"index": 0, "text": "x", "finish_reason": "tired"}]}, 500, "unknown_finish_reason"),
        (b"null", 500, "internal_server_error"),
        (b"<html>", 500, "internal_server_error"),
        (b"", 500, "internal_server_error"),
    ],
)
async def test_a_success_that_is_none_becomes_an_error(body: Any, status: int, code: str) -> None:
    """200 says nothing about the answer."""
    async with serving(answering(body)) as server:
        answer = await server.ask({"model": "m"}, path=COMPLETIONS)
        assert (answer.status, answer.error["code"]) == (status, code)
        assert (await server.one_record())["error_code"] == code


@pytest.mark.parametrize("given", ["", "with space", "a" * 129, "<script>", "ä"])
async def test_a_request_id_that_is_unfit_is_replaced(given: str) -> None:
    """And the engine gets the client's id with a suffix of its own, so that tries can be told apart."""
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append([value.decode() for name, value in scope["headers"] if name == b"x-request-id"])
        await answering(WHOLE)(scope, receive, send)

    async with serving(app) as server:
        unfit = await server.ask({}, headers={"x-request-id": given})
        first = await server.ask({}, headers={"x-request-id": "good-1"})
        await server.ask({}, headers={"x-request-id": "good-1", "x-request-attempt": "2"})
        assert [record["attempt"] for record in server.records] == [1, 1, 2]
    assert unfit.header("x-request-id") not in {given, None}
    assert first.header("x-request-id") == "good-1"
    (two,), (three,) = seen[1:]
    assert two != three
    assert two.startswith("good-1-")
    assert three.startswith("good-1-")


async def test_a_request_that_may_have_killed_the_engine_is_asked_for_once_more_at_most() -> None:
    """`x-should-retry` steers stock SDKs, which say how often they have tried."""
    dead = b'{"error":{"message":"EngineCore encountered an issue.","code":500}}'
    async with serving(answering(dead, status=500)) as server:
        first = await server.ask({}, headers={"x-stainless-retry-count": "0"})
        second = await server.ask({}, headers={"x-stainless-retry-count": "1"})
    assert [answer.header("x-should-retry") for answer in (first, second)] == ["true", "false"]
    assert second.error["code"] == "engine_unavailable"


async def test_what_is_not_known_is_not_taken_for_broken() -> None:
    """SageMaker's route serves other tasks too."""
    async with serving(answering({"object": "list", "data": []})) as server:
        assert (await server.ask({"messages": []}, path="/invocations")).status == 200
        assert (await server.ask({"messages": []})).status == 500


async def test_what_was_said_of_the_body_that_is_replaced_goes_with_it() -> None:
    told = [b"etag", b"digest", b"content-md5", b"content-range", b"last-modified", b"repr-digest"]
    fields = [*JSON, (b"x-kept", b"1"), *((name, b"1") for name in told)]
    async with serving(answering({"error": {"message": "no"}}, status=400, headers=fields)) as server:
        answer = await server.ask({})
    assert answer.header("x-kept") == "1"
    assert {name.encode() for name, _ in answer.headers}.isdisjoint(told)


class Explaining(Counting):
    def explain(self, error: BaseException) -> ErrorInfo | None:
        body = json.dumps({"error": {"message": str(error), "type": "BadRequestError", "code": 400}}).encode()
        return classify_response(400, {}, body)


async def test_the_engine_may_explain_what_escaped_from_its_application() -> None:
    """vLLM's template errors pass all its own handlers but the outermost."""
    async with serving(streaming(ValueError("roles must alternate")), engine=Explaining()) as server:
        answer = await server.ask({"stream": True})
    assert (answer.status, answer.error["message"]) == (400, "roles must alternate")


async def health(_request: Any) -> PlainTextResponse:
    return PlainTextResponse("", status_code=503)


async def models(_request: Any) -> JSONResponse:
    return JSONResponse({"data": []})


async def chat(request: Any) -> JSONResponse:
    return JSONResponse(await request.json())


def starlette() -> Starlette:
    routes = [
        Route("/health", health),
        Route("/metrics", health),
        Route("/v1/models", models),
        Route("/v1/chat/completions", chat, methods=["POST"]),
    ]
    cors = Middleware(CORSMiddleware, allow_origins=["https://a.example"], allow_methods=["*"], allow_credentials=True)
    return Starlette(routes=routes, middleware=[cors])


async def test_probes_metrics_and_preflights_are_left_alone() -> None:
    """A balancer's 503 keeps its empty body; nothing is recorded."""
    async with serving(starlette()) as server:
        for path in ("/health", "/metrics"):
            answer = await server.ask(path=path, method="GET")
            assert (answer.status, answer.body, answer.header("x-request-id")) == (503, b"", None)
        preflight = {"origin": "https://a.example", "access-control-request-method": "POST"}
        await server.ask(path="/v1/chat/completions", method="OPTIONS", headers=preflight)
        assert server.records == []
        assert (await server.ask(path="/v1/models", method="GET")).body == b'{"data":[]}'
        assert (await server.one_record())["outcome"] == "completed"


async def test_refusals_carry_the_applications_cors_headers() -> None:
    """A browser shows no answer without them, and the CORS middleware stands inside of the shim."""
    inner = starlette()

    def mounted(shim: Any) -> Any:
        async def outer(scope: Scope, receive: Receive, send: Send) -> None:
            scope["app"] = inner  # as Starlette sets it before its middleware
            await shim(scope, receive, send)

        return outer

    async with serving(inner, wrap=mounted) as server:
        for origin, allowed in (("https://a.example", "https://a.example"), ("https://b.example", None)):
            refused = await server.ask(b"{", headers={"origin": origin})
            assert refused.error["code"] == "invalid_request_error"
            assert refused.header("access-control-allow-origin") == allowed
        unjudged = await server.ask({"x": 1}, headers={"origin": "https://a.example"})
        assert unjudged.error["code"] == "internal_server_error"
        assert unjudged.header("access-control-allow-origin") == "https://a.example"


@pytest.mark.parametrize(
    ("hint", "seconds", "milliseconds"),
    [("7", "7", "7000"), ("120", "120", "120000"), ("3600", "120", "120000"), ("0", "5", "5000"), ("-5", "5", "5000")],
)
async def test_an_engines_hint_is_passed_on_within_bounds(hint: str, seconds: str, milliseconds: str) -> None:
    """HDR-6: stock SDKs ignore a hint of 0, so ours stands in for it, and never retry after one of over two minutes."""
    app = answering({"detail": "busy"}, status=503, headers=[*JSON, (b"retry-after", hint.encode())])
    async with serving(app) as server:
        answer = await server.ask({"model": "m"})
    assert answer.error["retry_after_ms"] == int(milliseconds)
    assert (answer.header("retry-after"), answer.header("retry-after-ms")) == (seconds, milliseconds)
