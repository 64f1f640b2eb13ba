"""Compressed answers, which nobody asked for: what is judged is read all the same, and never called whole unread."""

from __future__ import annotations

import functools
import gzip
import json
import zlib
from typing import Any

import pytest
from tests.shim.apps import DONE, EVENTS, GOOD, JSON, WHOLE, answering, chunk
from tests.shim.wire import Answer, serving

pytestmark = pytest.mark.anyio
PLAIN = json.dumps(WHOLE).encode()
CUT = chunk("a")
# Parametrised bytes are in a test's name, which is the same at each collection.
zipped = functools.partial(gzip.compress, mtime=0)


async def answered(body: bytes, encoding: bytes, kind: list[tuple[bytes, bytes]], **more: Any) -> tuple[Answer, Any]:
    app = answering(body, headers=[*kind, (b"content-encoding", encoding)])
    async with serving(app) as server:
        return await server.ask({"stream": kind is EVENTS}, **more), await server.one_record()


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (PLAIN, b"Identity"),
        (PLAIN, b""),
        (zipped(PLAIN), b"GZIP"),
        (zipped(PLAIN[:50]) + zipped(PLAIN[50:]), b"x-gzip"),
        (zlib.compress(PLAIN), b" deflate"),
    ],
)
async def test_a_whole_one_passes_readable(body: bytes, encoding: bytes) -> None:
    answer, record = await answered(body, encoding, JSON)
    assert (answer.body, answer.header("content-encoding")) == (PLAIN, None)
    assert (record["outcome"], record["completion_tokens"]) == ("completed", 1)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (PLAIN[:-9], b"Identity"),
        (PLAIN[:-9], b""),
        (zipped(PLAIN)[:-20], b"gzip"),
        (zipped(PLAIN[:-9]), b"gzip"),
        (PLAIN, b"gzip"),
        (b"\x0b\x02\x80", b"br"),
        (b"", b"gzip"),
    ],
)
async def test_one_that_is_cut_or_cannot_be_read_is_none(body: bytes, encoding: bytes) -> None:
    answer, record = await answered(body, encoding, JSON)
    assert (answer.status, answer.error["code"]) == (500, "internal_server_error")
    assert record["outcome"] == "failed"


async def test_a_stream_is_read_as_it_comes() -> None:
    answer, record = await answered(zipped(GOOD), b"gzip", EVENTS)
    assert (answer.body, answer.header("content-encoding")) == (GOOD, None)
    assert (record["outcome"], record["finish_reasons"]) == ("completed", ["stop"])


@pytest.mark.parametrize("body", [zipped(CUT), zipped(CUT)[:-12], zipped(CUT + DONE)])
async def test_a_stream_that_is_cut_ends_with_an_error(body: bytes) -> None:
    answer, record = await answered(body, b"gzip", EVENTS)
    assert b"[DONE]" not in answer.body
    assert b'"error"' in answer.body
    assert record["outcome"] == "failed"


async def test_what_is_not_judged_stays_compressed() -> None:
    packed = zipped(b'{"data": []}')
    answer, record = await answered(packed, b"gzip", JSON, path="/v1/embeddings")
    assert (answer.body, answer.header("content-encoding"), record["outcome"]) == (packed, "gzip", "completed")


async def test_a_little_that_claims_to_be_very_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastword_shim.protocol.encodings.MAX_INFLATED", 100_000)
    answer, _ = await answered(zipped(PLAIN + b" " * 100_000), b"gzip", JSON)
    assert answer.error["code"] == "internal_server_error"


@pytest.mark.parametrize(("path", "told"), [("/v1/chat/completions", "identity"), ("/v1/models", "gzip")])
async def test_none_is_asked_for_where_answers_are_read(path: str, told: str) -> None:
    seen: list[Any] = []
    inner = answering(WHOLE)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["headers"])
        await inner(scope, receive, send)

    async with serving(app) as server:
        await server.ask({}, path=path, headers={"accept-encoding": "gzip"})
    assert [value for name, value in seen[0] if name == b"accept-encoding"] == [told.encode()]
