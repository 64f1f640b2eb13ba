"""Traps on every route and in every kind of ending: nothing of the machine, nobody's key and nobody's words get out."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from tests.shim.apps import App, answering, chunk, streaming
from tests.shim.events import BEGUN, MESSAGE_START, RESPONSES, completed, named, response
from tests.shim.inprocess import answered
from tests.shim.wire import serving

from lastword_shim.protocol.private import Secrets
from lastword_shim.protocol.redact import loggable, loggable_traceback, scrub

pytestmark = pytest.mark.anyio
KEY = "sk-live-0123456789abcdefghij"
OWN_KEY = "my-own-key-of-no-known-form"
PROMPT = "tell-nobody-what-i-ask"
TRAPS = (
    "/root/models/private",
    "10.20.30.40",
    "Traceback (most recent call last)",
    "0x7f3a12345678",
    "CUDA error",
    KEY,
)
TRAP = f"failed at {', '.join(TRAPS)} for Bearer {OWN_KEY}"
FORBIDDEN = ("/root", "10.20", "Traceback", "0x7f", "CUDA", KEY, OWN_KEY)


def said(status: int, **members: object) -> dict[str, Any]:
    return {
        "error": {
            "message": TRAP,
            "type": TRAP,
            "param": TRAP,
            "code": TRAP,
            "detail": TRAP,
            **members,
            "status": status,
        }
    }


def flat(kind: str) -> bytes:
    return named(kind, error={"type": TRAP, "message": TRAP}, message=TRAP, code=TRAP, param=TRAP)


FAILED = named("response.failed", response=response("failed", error={"code": TRAP, "message": TRAP}))
ENDINGS: dict[str, App] = {
    "400": answering(said(400), status=400),
    "404": answering({"detail": TRAP}, status=404),
    "422": answering({"detail": [{"loc": ["body", TRAP], "msg": TRAP, "input": PROMPT}]}, status=422),
    "429": answering(said(429), status=429),
    "500": answering(said(500), status=500),
    "503, text": answering(TRAP.encode(), status=503, headers=[(b"content-type", b"text/plain")]),
    "502, HTML": answering(f"<title>{TRAP}</title>".encode(), status=502, headers=[(b"content-type", b"text/html")]),
    "details": answering({"error": {"message": "no", "code": 400, "details": {"a": TRAP, "b": [TRAP]}}}, status=400),
    "own code": answering({"error": {"message": "no", "code": TRAP, "contract": "1"}}, status=400),
    "exception": streaming(RuntimeError(TRAP)),
    "exception of many": streaming(ExceptionGroup(TRAP, [ValueError(TRAP)])),
    "exception in the middle": streaming(chunk("a"), RuntimeError(TRAP)),
    "error event": streaming(chunk("a"), b"data: " + json.dumps(said(500)).encode() + b"\n\n"),
    "error event of the caller's": streaming(
        chunk("a"), b"data: " + json.dumps(said(400, code=400)).encode() + b"\n\n"
    ),
    "plain error event": streaming(chunk("a"), b"event: error\ndata: " + TRAP.encode() + b"\n\n"),
    "named error": streaming(BEGUN, flat("error")),
    "named error of Anthropic's": streaming(MESSAGE_START, flat("error")),
    "response.failed": streaming(BEGUN, FAILED),
    "status failed": answering(response("failed", error={"code": TRAP, "message": TRAP})),
    "completed, but failed": streaming(BEGUN, completed("failed", error={"code": TRAP, "message": TRAP})),
    "finish_reason": streaming(chunk("a", finish=TRAP), b"data: [DONE]\n\n"),
    "stop_reason": streaming(MESSAGE_START, named("message_delta", delta={"stop_reason": TRAP}), named("message_stop")),
    "200 with an error": answering(said(200)),
}
ROUTES = ("/v1/chat/completions", RESPONSES, "/v1/messages", "/v1/embeddings", "/v1/audio/transcriptions", "/anything")
ONLY_ON = {
    # Where an answer is not judged, or not of the route's protocol, what calls itself success is passed on unread.
    "status failed": (RESPONSES,),
    "completed, but failed": (RESPONSES,),
    "stop_reason": ("/v1/messages",),
    "200 with an error": ROUTES[:3],
    "finish_reason": (),  # an unknown one is surfaced as it came (FIN-3); for its record see below
}


@pytest.mark.parametrize(("name", "path"), [(name, path) for name in ENDINGS for path in ONLY_ON.get(name, ROUTES)])
async def test_nothing_internal_leaves_on_any_route_in_any_ending(
    name: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the answer, and neither key nor prompt in the log or the record."""
    headers = {"authorization": f"Bearer {OWN_KEY}", "x-request-id": "trap"}
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": PROMPT}]}
    with caplog.at_level(logging.DEBUG, "lastword_shim"):
        answer, told = await answered(ENDINGS[name], body, path=path, headers=headers, hold=0)
    record = json.dumps(told)
    whole = answer.body.decode() + str(answer.headers)
    assert [trap for trap in FORBIDDEN if trap in whole] == []
    assert "error" in whole
    for secret in (KEY, OWN_KEY, PROMPT):
        assert secret not in caplog.text + record


async def test_a_finish_reason_that_is_no_word_is_not_recorded() -> None:
    """It might be anything."""
    _, record = await answered(ENDINGS["finish_reason"])
    assert record["finish_reasons"] == ["unreadable"]
    keyed = streaming(chunk("a", finish=OWN_KEY), b"data: [DONE]\n\n")
    _, record = await answered(keyed, headers={"authorization": f"Bearer {OWN_KEY}"})
    assert record["finish_reasons"] == ["unreadable"]


@pytest.mark.parametrize("request_id", ["a b", "x" * 129, "<script>", "../../etc", "ü", "a\tb", "", "a,b"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", RESPONSES, "/v1/messages", "/anything", "/lastword/nothing"])
async def test_an_id_from_outside_that_is_none_goes_nowhere(
    request_id: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not into the answer, the log, the record, or the engine."""
    inward: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        inward.extend(value for name, value in scope["headers"] if name == b"x-request-id")
        await streaming(RuntimeError("no"))(scope, receive, send)

    with caplog.at_level(logging.DEBUG, "lastword_shim"):
        async with serving(app) as server:
            answer = await server.ask(path=path, headers={"x-request-id": request_id} if request_id else {})
    given = answer.header("x-request-id")
    assert given is not None
    assert given != request_id
    assert all(value.decode().startswith(given) for value in inward)
    if len(request_id) > 3:
        assert request_id not in answer.body.decode() + caplog.text + json.dumps(server.records)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"key {KEY} is wrong", "key <key> is wrong"),
        ("Authorization: Bearer abc.def-ghi_jkl", "Authorization: Bearer <key>"),
        ("api_key=abcdefgh12 and token=hf_abcdefghijklmnopqrst", "api_key=<key> and token=<key>"),
        ("API Key: abcdefgh12; secret-token = abcdefgh12", "API Key: <key>; secret-token = <key>"),
        ("password: 'hunter2hunter2'", "password: '<key>'"),
        ("token=123456789 of the vocabulary", "token=123456789 of the vocabulary"),
        ("Unexpected key: temperature_of_it", "Unexpected key: temperature_of_it"),
        ("max_tokens=5 exceeds sk-learn's", "max_tokens=5 exceeds sk-learn's"),
    ],
)
def test_what_looks_like_a_key_is_struck_out(text: str, left: str) -> None:
    """In what leaves and in what is logged."""
    assert (scrub(text), loggable(text)) == (left, left)


def test_a_traceback_is_logged_in_lines_and_without_values_of_the_body() -> None:
    """pydantic prints what it was given, and an exception's text may forge lines."""
    with pytest.raises(ValueError, match="1 error") as caught:
        raise ValueError(f"1 error\n  bad [type=int, input_value='{PROMPT}', input_type=str]\x1b[31m \rWARNING forged")
    text = loggable_traceback(caught.value, Secrets((OWN_KEY,)))
    assert PROMPT not in text
    assert "input_value=…, input_type=str]".encode("unicode_escape").decode() in text
    assert "\x1b" not in text
    assert "\r" not in text
    assert "test_traps.py" in text


async def test_a_key_that_the_engine_repeats_is_struck_out_of_both() -> None:
    """Whatever it looks like; the caller's own, for nobody else's is known."""
    app = answering({"error": {"message": f"unknown key {OWN_KEY}", "code": 401, "param": OWN_KEY}}, status=401)
    for header, value in (("authorization", f"Bearer {OWN_KEY}"), ("x-api-key", OWN_KEY), ("api-key", OWN_KEY)):
        answer, _ = await answered(app, {"model": "m"}, headers={header: value})
        assert answer.error["message"] == "unknown key <key>"
        assert answer.error["param"] is None


async def test_an_engine_that_raises_after_its_answer_tells_only_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """And that without keys."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await streaming(chunk("a", finish="stop"), b"data: [DONE]\n\n")(scope, receive, send)
        await asyncio.sleep(0)
        raise RuntimeError(TRAP)

    answer, _ = await answered(app, headers={"authorization": f"Bearer {OWN_KEY}"})
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert "RuntimeError" in caplog.text
    assert KEY not in caplog.text
