"""A request on its way to the upstream, whatever the server in front made of it."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.shim.apps import Message, Scope
from tests.sidecar.wire import Call, plain, upstream

from lastword_shim.sidecar.health import Health
from lastword_shim.sidecar.proxy import Proxy
from lastword_shim.sidecar.serve import Service

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("body", [b"", b"four", b"sixsix"])
async def test_a_body_of_another_length_than_was_announced_goes_nowhere(body: bytes) -> None:
    async def handler(call: Call) -> None:
        await call.send(plain())

    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []
    scope: Scope = {
        "type": "http", "method": "POST", "path": "/metrics", "raw_path": b"/metrics", "query_string": b"",
        "root_path": "", "scheme": "http", "http_version": "1.1", "headers": [(b"content-length", b"5")],
    }  # fmt: skip

    async def receive() -> Message:
        if not given:
            await asyncio.Event().wait()
        return given.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    async with upstream(handler) as engine:
        pool = Service(upstream=engine.url).pool()
        await Proxy(pool, Health(pool))(scope, receive, send)
        pool.close()
        assert engine.calls == []
    assert (sent[0]["status"], json.loads(sent[1]["body"])["error"]["code"]) == (400, "invalid_request_error")
