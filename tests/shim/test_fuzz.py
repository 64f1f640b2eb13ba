"""Any request, any application, in any order: one start, one end, one terminal, one record, and nobody is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.shim.apps import Message, Receive, Scope, Send
from tests.shim.fuzzing import (
    BODIES,
    CHAT,
    COMPLETIONS,
    HEADERS,
    MESSAGES,
    OTHERS,
    RESPONSES,
    USUAL,
    applications,
)
from tests.shim.wire import conforms, recording

from lastword._codes import CODES, Code
from lastword_shim import Settings, Shim
from lastword_shim.protocol.routes import route_of


@dataclass
class Wire:
    """What a server does for one request: it hands the body over, and takes what leaves."""

    body: list[bytes]
    leaves_after: int | None
    refuses_after: int | None
    sent: list[Message] = field(default_factory=list)
    asked: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self) -> Message:
        self.asked += 1
        if self.leaves_after is not None and self.asked > self.leaves_after:
            return {"type": "http.disconnect"}
        if self.body:
            return {"type": "http.request", "body": self.body.pop(0), "more_body": bool(self.body)}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.refuses_after is not None and len(self.sent) >= self.refuses_after:
            raise OSError("gone")
        self.sent.append(message)
        await asyncio.sleep(0)


def application(steps: list[Any]) -> Any:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for step in steps:
            match step:
                case "receive":
                    await receive()
                case "yield":
                    await asyncio.sleep(0)
                case "hang":
                    while (await receive())["type"] != "http.disconnect":
                        pass
                case "cancelled":
                    raise asyncio.CancelledError
                case type():
                    raise (
                        step("boom /root/secret", [ValueError()])
                        if step is ExceptionGroup
                        else step("boom /root/secret")
                    )
                case _:
                    await send(step)

    return app


def check_the_answer(wire: Wire, path: str, record: dict[str, Any], sent: bytes) -> None:
    """One start, one end, and of a stream that is judged exactly one terminal."""
    kinds = [message["type"] for message in wire.sent]
    if not kinds or record["http_status"] == 499:
        assert record["error_code"] in {"client_disconnected", *CODES}
        return
    assert kinds.count("http.response.start") == 1
    assert kinds[0] == "http.response.start"
    ends = [index for index, message in enumerate(wire.sent[1:], 1) if not message.get("more_body")]
    assert set(kinds[1:]) <= {"http.response.body"}
    assert ends in ([], [len(wire.sent) - 1])
    start, body = wire.sent[0], b"".join(message["body"] for message in wire.sent[1:])
    ids = [value for name, value in start["headers"] if name.lower() == b"x-request-id"]
    assert ids == [record["request_id"].encode()]
    if not ends:
        assert record["outcome"] != "completed"
    elif start["status"] >= 400:
        assert b"/root/" not in body
        check_the_error(start, body, path)
    elif is_stream(start) and route_of("POST", path).judged:
        assert b"/root/" not in body
        check_the_stream(body, path, record, sent)


def is_stream(start: Message) -> bool:
    fields = {name.lower(): value for name, value in start["headers"]}
    readable = b"content-encoding" not in fields
    return start["status"] < 300 and readable and fields.get(b"content-type", b"").startswith(b"text/event-stream")


def check_the_error(start: Message, body: bytes, path: str) -> None:
    parsed = json.loads(body)
    conforms(parsed, "error")
    assert start["status"] == (CODES[Code(parsed["error"]["code"])].http_status or 500)
    assert (parsed.get("type") == "error") is path.startswith(MESSAGES)


def check_the_stream(body: bytes, path: str, record: dict[str, Any], sent: bytes) -> None:
    text = body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    last = [block for block in text.split("\n\n") if re.search("^data", block, re.MULTILINE)][-1]
    if record["outcome"] == "completed":
        word = {RESPONSES: r'"response\.(completed|incomplete)"', MESSAGES: '"message_stop"'}.get(path, r"\[DONE\]")
        assert re.search(word, last)
        assert '"contract"' not in text
        assert may_be_success(path, sent)
    else:
        assert '"contract": "1"' in last
        assert path != MESSAGES or '"stop_reason": "abort"' not in text
        assert text.count('"contract": "1"') == (2 if path == RESPONSES else 1)
    assert len(re.findall(TERMINALS.get(path, r'^data: ?(?:\[DONE\]|.*"error": ?[^n ])'), text, re.MULTILINE)) == 1


TERMINALS = {
    RESPONSES: r"^event: (?:response\.(?:completed|incomplete|failed)|error)\n(?=data)",
    MESSAGES: r"^event: (?:message_stop|error)\n(?=data)",
}


def may_be_success(path: str, sent: bytes) -> bool:
    """Whether what the application sent has what success needs, and nothing before it that says otherwise."""
    sent = re.sub(rb"\r\n?", b"\n", sent)
    ends = {RESPONSES: rb"event: response\.(completed|incomplete)\n.*", MESSAGES: rb"event: message_stop"}
    end = re.search(ends.get(path, rb"data: \[DONE\]"), sent)
    if end is None:
        return False
    before = sent[: end.start()]
    if path == RESPONSES:
        return b"event: response.failed" not in before and not re.search(rb'"status": "(failed|cancelled)"', end[0])
    good = b'"stop_reason": "' if path == MESSAGES else b'"finish_reason": "'
    return (
        good in before and b'"abort"' not in before and not re.search(rb'^data:.*"error": ?[^n ]', before, re.MULTILINE)
    )


async def play(scope: Scope, steps: list[Any], wire: Wire, limits: dict[str, Any]) -> dict[str, Any]:
    """The record of the one exchange, after which nothing is left of it."""
    before = asyncio.all_tasks()
    shim = Shim(application(steps), settings=Settings(total_timeout=0.05, hold=0.01, **limits))
    records: list[dict[str, Any]] = []
    with recording(shim, records):
        asyncio.get_running_loop().call_later(0.2, wire.gone.set)  # no client waits for ever
        async with asyncio.timeout(5):
            with contextlib.suppress(*([] if wire.refuses_after is None else [OSError])):  # its own send failed
                await shim(scope, wire.receive, wire.send)
        while left := asyncio.all_tasks() - before:
            async with asyncio.timeout(3):
                await asyncio.wait(left, timeout=0.05)
    (record,) = records
    places = shim._core.places  # type: ignore[union-attr]
    assert (len(shim._core.register), places.inside, places.waiting) == (0, 0, 0)  # type: ignore[union-attr]
    return record


@pytest.mark.parametrize("bounded", [False, True])
@settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "250")),
    derandomize="FUZZ_EXAMPLES" not in os.environ,  # the same ones each time; FUZZ_EXAMPLES=8000 looks for new ones
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # an example that hangs takes seconds, and shrinking minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(data=st.data())
def test_the_invariants_hold_whatever_comes(bounded: bool, data: st.DataObject) -> None:
    """No exception reaches the server, and the account of each exchange is whole."""
    other = data.draw(st.sampled_from(OTHERS))
    path = data.draw(st.sampled_from([CHAT, COMPLETIONS, RESPONSES, RESPONSES, MESSAGES, MESSAGES, other]))
    method = data.draw(st.sampled_from(["POST"] * 8 + ["GET", "PUT", "HEAD"]))
    headers = data.draw(st.lists(st.sampled_from(HEADERS), max_size=3, unique_by=lambda field: field[0].lower()))
    odd = st.lists(st.sampled_from(BODIES), min_size=1, max_size=3)
    body = data.draw(st.one_of(st.just(USUAL), st.just(USUAL), odd))
    steps = data.draw(applications(path))
    leaves_after = data.draw(st.sampled_from([None] * 6 + [0, 1, 2, 3]))
    refuses_after = data.draw(st.sampled_from([None] * 8 + [0, 1, 2, 3]))
    limits: dict[str, Any] = {"max_inflight": 1, "max_queued": 0, "max_body_bytes": 60} if bounded else {}
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "root_path": "",
        "headers": headers,
    }
    wire = Wire(list(body), leaves_after, refuses_after)
    record = asyncio.run(play(scope, steps, wire, limits))
    if refuses_after is None and method == "POST":
        sent = b"".join(step["body"] for step in steps if isinstance(step, dict) and "body" in step)
        check_the_answer(wire, path, record, sent)
