"""What the fuzz test draws: requests, and applications that do right with a few things wrong, or anything at all."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from tests.shim.apps import DONE, ERROR, ROLE, Message, chunk
from tests.shim.events import (
    BEGUN,
    BLOCK,
    BLOCK_STOP,
    FAILED,
    MESSAGE_START,
    MESSAGE_STOP,
    TEXT_DONE,
    completed,
    message_delta,
)

CHAT, COMPLETIONS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
OTHERS = ("/v1/embeddings", "/invocations", "/v1/audio/transcriptions", "/v1/models", "/v1/messages/count_tokens", "/x")
BODIES = [
    b"", b"{}", b"[]", b"null", b"\xff\xfe", b"{", b'{"stream": "yes", "n": 2}', b"[" * 500, b'{"n": 1e400, "max_tokens": "7.0"}',
    b'{"messages": []}', b'{"prompt": ["a", "b"], "stream": true}', b'{"model": {"a": 1}, "stream": [], "n": null}',
]  # fmt: skip
USUAL = [b'{"model": "m", ', b'"stream": true}']
HEADERS = [
    (b"x-request-id", b"r1"), (b"x-request-id", b"\xe9 \x00"), (b"X-Request-Id", b"a" * 200),
    (b"content-type", b"application/json"), (b"content-type", b"multipart/form-data"), (b"content-type", b"\xff"),
    (b"content-length", b"7"), (b"content-length", b"x"), (b"content-length", b"99999999"), (b"upgrade", b"h2c"),
    (b"request-timeout-ms", b"20"), (b"request-timeout-ms", b"-1"), (b"request-timeout-ms", b"9" * 30),
    (b"authorization", b"Bearer secret-of-somebody"), (b"authorization", b""), (b"x-request-attempt", b"2"),
    (b"x-stainless-retry-count", b"\xb2"), (b"transfer-encoding", b"chunked"), (b"accept-encoding", b"gzip"),
]  # fmt: skip
CHOICES = [ROLE, chunk("a"), chunk("b"), chunk(finish="stop"), DONE]
GOOD = {
    CHAT: CHOICES,
    COMPLETIONS: CHOICES,
    RESPONSES: [event + b"\n\n" for event in (BEGUN + TEXT_DONE + completed()).split(b"\n\n")[:-1]],
    MESSAGES: [MESSAGE_START, BLOCK, BLOCK_STOP, message_delta("end_turn"), MESSAGE_STOP],
}
PARTS = [
    b"", b"\n", b"\n\n", b"data: ", b": c\n\n", b"data: {}\n\n", b"data: [DONE]\r\n\r\n",
    b'data: {"choices": [7]}\n\n', b"\xff\xfe",
    b'{"id":"c","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}', b'{"error": "no"}', b"event: error\n",
    b"null", b"[" * 3000, b"data: NaN\n\n", ERROR, FAILED,
    chunk(finish="abort"), chunk("b", finish="length", index=1), completed()[:50],
    completed("incomplete"), completed("failed"), completed("cancelled"), message_delta(None), message_delta("abort"),
    *(part for parts in GOOD.values() for part in parts),
]  # fmt: skip
ILL = [ERROR, DONE, chunk(finish="abort"), chunk(finish="error"), chunk("b", finish="tired"), chunk("c", index=1)]
WRONG = {
    CHAT: ILL,
    COMPLETIONS: ILL,
    RESPONSES: [FAILED, *(completed(status) for status in ("failed", "cancelled", "incomplete", "completed"))],
    MESSAGES: [ERROR, MESSAGE_STOP, *(message_delta(reason) for reason in (None, "abort", "tired", "end_turn"))],
}
EVENTS = [(b"content-type", b"text/event-stream")]
WHOLE = [(b"content-type", b"application/json")]
FIELDS = [
    EVENTS,
    [],
    WHOLE,
    [(b"Content-Length", b"3")],
    [*EVENTS, (b"content-encoding", b"gzip")],
    [(b"x-request-id", b"y")],
]
FAULTS = ["receive", "yield", "hang", "cancelled", RuntimeError, KeyError, ExceptionGroup]
BREACHES: list[Message] = [
    {"type": "http.response.trailers", "headers": []},
    {"type": "http.response.pathsend", "path": "/x"},
]


def begin(status: int, headers: list[tuple[bytes, bytes]]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}


def part_of(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


@st.composite
def applications(draw: st.DrawFn, path: str) -> list[Any]:
    """A good answer of the route's with a few things wrong, or anything at all."""
    parts = list(GOOD.get(path, CHOICES))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(parts)))
        match draw(st.sampled_from(["drop", "cut", "insert", "insert", "double", "split"])):
            case "drop":
                del parts[at : at + 1]
            case "cut":
                del parts[at:]
            case "insert":
                parts.insert(
                    at,
                    draw(
                        st.one_of(st.sampled_from(WRONG.get(path, ILL)), st.sampled_from(PARTS), st.binary(max_size=20))
                    ),
                )
            case "double" if at < len(parts):
                parts.insert(at, parts[at])
            case "split" if at < len(parts):
                half = draw(st.integers(0, len(parts[at])))
                parts[at : at + 1] = [parts[at][:half], parts[at][half:]]
    status = draw(st.sampled_from([200, 200, 200, 200, 200, 201, 204, 304, 400, 401, 404, 429, 500, 503, 529]))
    fields = EVENTS if status == 200 else draw(st.sampled_from(FIELDS))
    steps: list[Any] = ["receive", begin(status, fields), *map(part_of, parts), part_of(b"", more=False)]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(steps)))
        wrong = st.one_of(
            st.sampled_from(FAULTS), st.sampled_from(BREACHES), st.builds(begin, st.just(500), st.sampled_from(FIELDS))
        )
        steps.insert(at, draw(wrong))
    return steps[: draw(st.integers(len(steps) // 2, len(steps)))] if draw(st.booleans()) else steps
