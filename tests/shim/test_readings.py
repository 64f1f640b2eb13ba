"""What the readings keep of an answer for the record; pure, bytes in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.shim.apps import DONE, chunk
from tests.shim.events import BEGUN, completed

from lastword_shim.protocol.ask import Ask
from lastword_shim.protocol.judging import reading_of
from lastword_shim.protocol.wire import CHAT, RESPONSES


@pytest.mark.parametrize("name", ["metrics", "timings"])
@pytest.mark.parametrize("status", [200, 500])
def test_what_an_engine_tells_beside_its_usage_is_kept(name: str, status: int) -> None:
    """The last of a stream, and a whole answer's; an error has none."""
    ask = Ask(CHAT, judged=True)
    told = []
    for events in (True, False):
        headers = {"content-type": "text/event-stream" if events else "application/json"}
        reading = reading_of(ask, status, headers, engine_says=(), on_content=lambda: None)
        whole = {"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}], name: {"n": 2}}
        more: list[dict[str, Any]] = [{name: {"n": 1}}, {name: {"n": 2}}]
        sent = chunk("a", **more[0]) + chunk(finish="stop", **more[1]) + DONE
        reading.feed(sent if events else json.dumps(whole).encode(), last=True)
        told.append(dict(reading.extras))
    assert told == ([{name: {"n": 2}}] * 2 if status == 200 else [{}, {}])


def test_what_an_engine_tells_of_a_response_is_kept_too() -> None:
    """Inside of it."""
    headers = {"content-type": "text/event-stream"}
    reading = reading_of(Ask(RESPONSES, judged=True), 200, headers, engine_says=(), on_content=lambda: None)
    reading.feed(BEGUN + completed(metrics={"queue_time_ms": 1.5}), last=True)
    assert reading.extras == {"metrics": {"queue_time_ms": 1.5}}
