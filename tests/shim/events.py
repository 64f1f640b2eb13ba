"""Streams whose events have names, as vLLM 0.32 writes them, and how a client reads what left of them."""

from __future__ import annotations

import json
from typing import Any

from tests.shim.apps import App, Receive, Scope, Send
from tests.shim.wire import Answer, conforms

from lastword_shim.engine import current

RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"


def named(kind: str, **members: object) -> bytes:
    """An event whose JSON has its type last, as pydantic writes vLLM's."""
    return f"event: {kind}\ndata: {json.dumps({**members, 'type': kind})}\n\n".encode()


def response(status: str = "in_progress", **members: object) -> dict[str, Any]:
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status, "output": []}
    fixed = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "usage": None}
    return {**whole, **fixed, **members}


ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
PART = {"type": "output_text", "text": "", "annotations": []}
DONE_ITEM = {**ITEM, "status": "completed", "content": [{**PART, "text": "Hello"}]}
_AT = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
CREATED = named("response.created", sequence_number=0, response=response()) + named(
    "response.in_progress", sequence_number=1, response=response()
)
TEXT = (
    named("response.output_item.added", sequence_number=2, output_index=0, item=ITEM)
    + named("response.content_part.added", sequence_number=3, part=PART, **_AT)
    + named("response.output_text.delta", sequence_number=4, delta="Hel", logprobs=[], **_AT)
    + named("response.output_text.delta", sequence_number=5, delta="lo", logprobs=[], **_AT)
)
TEXT_DONE = (
    named("response.output_text.done", sequence_number=6, text="Hello", logprobs=[], **_AT)
    + named("response.content_part.done", sequence_number=7, part={**PART, "text": "Hello"}, **_AT)
    + named("response.output_item.done", sequence_number=8, output_index=0, item=DONE_ITEM)
)
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def completed(status: str = "completed", **members: object) -> bytes:
    whole = response(status, **{"output": [DONE_ITEM], "usage": USAGE, **members})
    return named("response.completed", sequence_number=9, response=whole)


BEGUN = CREATED + TEXT
WHOLE = BEGUN + TEXT_DONE
GOOD = WHOLE + completed()
FAILED = named(
    "response.failed",
    sequence_number=9,
    response=response("failed", error={"code": "server_error", "message": "Traceback in /root/x.py"}),
)

MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [],
    "model": "m",
    "stop_reason": None,
}
MESSAGE_START = named(
    "message_start", message={**MESSAGE, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 0}}
)
BLOCK = (
    named("content_block_start", index=0, content_block={"type": "text", "text": ""})
    + named("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hel"})
    + named("content_block_delta", index=0, delta={"type": "text_delta", "text": "lo"})
)
BLOCK_STOP = named("content_block_stop", index=0)
MESSAGE_STOP = named("message_stop")


def message_delta(stop_reason: str | None) -> bytes:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return named("message_delta", delta=delta, usage={"input_tokens": 3, "output_tokens": 2})


def engine_says(app: App, *reasons: str) -> App:
    """The application of an engine that knows how its generations ended."""

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        ticket = current()
        assert ticket is not None
        ticket.finish_reasons.update(reasons)
        await app(scope, receive, send)

    return told


def read_events(body: bytes) -> list[tuple[str, Any]]:
    """The events of a stream that left, as (name, parsed data)."""
    found = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if "data" in fields:
            found.append((fields.get("event", ""), json.loads(fields["data"])))
    return found


def last_word(answer: Answer) -> tuple[str, dict[str, Any]]:
    """The error event that ends the stream: the only one, and in the contract's shape."""
    assert (answer.status, answer.complete) == (200, True)
    events = read_events(answer.body)
    name, data = events[-1]
    conforms({"event": name, "data": data}, "stream-error-event")
    assert sum(each in {"error", "response.failed"} or "error" in its for each, its in events) == 1
    return name, data
