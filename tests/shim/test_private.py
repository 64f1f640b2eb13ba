"""What a caller wrote is not in the log, however an exception or an engine's answer quotes it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.shim.apps import DONE, EVENTS, Receive, Scope, Send, answering, chunk, read_body
from tests.shim.wire import serving

from lastword_shim.protocol.private import Secrets
from lastword_shim.protocol.redact import loggable_traceback

pytestmark = pytest.mark.anyio
PROMPT = 'Dear doctor, my name is Zoë Müller \U0001f600 and\n\tthe "lump" under C:\\arm hurts; what\'s wrong with me?'
WORDS = ("doctor", "ller", "lump", "hurts", "wrong with")
WORDS_OF_HIS = "a sentence that nobody else would say"
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": PROMPT}]}),
    "parts": ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]}),
    "tools": (
        "/v1/chat/completions",
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": json.dumps({"q": PROMPT})}}]}]},
    ),
    "completions": ("/v1/completions", {"prompt": ["x", PROMPT]}),
    "responses": ("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": PROMPT}]}]}),
    "messages": ("/v1/messages", {"max_tokens": 5, "system": PROMPT, "messages": []}),
    "embeddings": ("/v1/embeddings", {"input": PROMPT}),
    "a route that is not known": ("/tokenize", {"prompt": PROMPT}),
}
QUOTED: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "by repr": repr,
    "in ASCII": ascii,
    "as JSON": json.dumps,
    "as bytes": lambda text: repr(text.encode()),
    "cut at both ends": lambda text: repr(text[6:-6]),
    "in a list": lambda text: repr([{"role": "user", "content": text}]),
}


def quoting(quote: Callable[[str], str], *sent: bytes) -> Any:
    """An application that fails over what it was asked, once it has ``sent`` so much of its stream."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        if sent:
            await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        for part in sent:
            await send({"type": "http.response.body", "body": part, "more_body": part != DONE})
        raise ValueError(f"the template failed near {quote(PROMPT)}, sorry")

    return app


def logged(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(f"{record.getMessage()} {record.exc_text or ''}" for record in caplog.records)


def hides(log: str) -> None:
    assert [word for word in WORDS if word in log] == []


@pytest.mark.parametrize("quote", QUOTED.values(), ids=QUOTED)
@pytest.mark.parametrize("name", BODIES)
async def test_an_exception_that_quotes_the_body_is_logged_without_it(
    name: str, quote: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    """What failed and where is told all the same; the body may be written with escapes or without."""
    path, body = BODIES[name]
    for ensure_ascii in (True, False):
        sent = json.dumps({"model": "some-model", **body}, ensure_ascii=ensure_ascii).encode()
        async with serving(quoting(quote)) as server:
            assert (await server.ask(sent, path=path)).status == 500
    log = logged(caplog)
    hides(log)
    assert log.count("ValueError: the template failed near") == 2
    assert log.count("<text>") >= 2
    assert ", line " in log
    assert "in app" in log


@pytest.mark.parametrize("sent", [[chunk("a")], [chunk("a", finish="stop"), DONE]], ids=["in the stream", "after it"])
async def test_so_it_is_whenever_it_is_raised(sent: list[bytes], caplog: pytest.LogCaptureFixture) -> None:
    """With its cause, its notes and those that it holds."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await quoting(repr, *sent)(scope, receive, send)
        except ValueError as error:
            error.add_note(PROMPT)
            raise ExceptionGroup(f"several: {PROMPT}", [error, KeyError(PROMPT)]) from error

    async with serving(app) as server:
        await server.ask({"stream": True, **BODIES["chat"][1]})
        await server.one_record()
    assert "KeyError: " in logged(caplog)
    hides(logged(caplog))


async def test_what_the_engine_says_of_a_prompt_reaches_its_caller_and_not_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The caller may see its own words, and needs them; what only he can mend is no warning to anybody else."""
    caplog.set_level(logging.INFO, "lastword_shim")
    for status in (400, 500):
        told = {"error": {"message": f"no <tag> in {PROMPT}", "type": "X", "code": status}}
        async with serving(answering(json.dumps(told).encode(), status=status)) as server:
            answer = await server.ask(BODIES["chat"][1])
            assert ("doctor" in answer.error["message"]) is (status == 400)
    assert logged(caplog).count("the engine said: no <tag> in <text>") == 2
    levels = [record.levelname for record in caplog.records if "the engine said" in record.getMessage()]
    assert levels == ["INFO", "WARNING"]
    hides(logged(caplog))


def test_nothing_is_read_before_something_is_to_be_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that goes well pays nothing."""
    reads: list[bytes] = []
    real = json.loads

    def loads(text: bytes, **how: Any) -> Any:
        reads.append(text)
        return real(text, **how)

    monkeypatch.setattr(json, "loads", loads)
    secrets = Secrets()
    secrets.read(json.dumps({"prompt": PROMPT}).encode())
    assert reads == []
    assert (secrets.masked(f"a {PROMPT}"), secrets.masked(f"b {PROMPT}")) == ("a <text>", "b <text>")
    assert len(reads) == 1


@pytest.mark.parametrize(
    ("body", "text", "masked"),
    [
        ({"prompt": "short"}, "a short one", "a short one"),
        ({"prompt": "eight ch"}, "of eight ch.", "of <text>."),
        ({"model": "some-model", "role": "assistant"}, "some-model: assistant", "some-model: assistant"),
        ({"prompt": "the model is not there"}, "the model does not exist", "the model does not exist"),
        ({"prompt": "x" * 40}, "y" * 30 + "x" * 30 + "y", "y" * 30 + "<text>" + "y"),
        ({"deep": {"deeper": [["under here it is"]]}}, "'under here it is'", "'<text>'"),
    ],
)
def test_words_that_are_everybodys_stay(body: dict[str, Any], text: str, masked: str) -> None:
    """A log without any words would tell nothing."""
    secrets = Secrets()
    secrets.read(json.dumps(body).encode())
    assert secrets.masked(text) == masked


@pytest.mark.parametrize("body", [b'{"prompt": "' + PROMPT[:24].encode(), b"\xff" + PROMPT[:24].encode(), b""])
def test_a_body_that_cannot_be_read_is_struck_out_as_it_stands(body: bytes) -> None:
    """It came in parts of which not all were kept, or was no JSON."""
    secrets = Secrets()
    secrets.read(body)
    assert ("doctor" in secrets.masked(f"failed: {PROMPT[:24]}")) is (not body)


@pytest.mark.parametrize("more", range(14))
def test_of_a_body_that_is_cut_the_strings_are_still_read(more: int) -> None:
    """Large ones are, to bound what is kept; with their escapes, wherever the cut falls."""
    text = "\u6211\u7684\u533b\u751f\u8bf4 \U0001f600 \u4e0d\u8981\u544a\u8bc9\u522b\u4eba " * 3
    sent = json.dumps({"model": "some-model", "messages": [{"role": "assistant", "content": text}], "x": text}).encode()
    secrets = Secrets()
    secrets.read(sent[: len(sent) - 20 - more])
    assert secrets.masked(f"some-model: {text}") == "some-model: <text>"
    secrets = Secrets()
    secrets.read(sent[: 212 + more])
    assert secrets.masked(f"of an assistant: {text[:24]}") == "of an assistant: <text>"


def test_bodies_and_messages_of_any_size_take_no_time() -> None:
    """Whatever they hold: bounds stand in front of every loop."""
    secrets = Secrets(("a-key-of-somebody",))
    for value in ("ab" * 500_000, [PROMPT + str(number) for number in range(20_000)], ["x" * 9] * 100_000):
        secrets.read(json.dumps({"input": value}).encode())
        began = time.monotonic()
        log = loggable_traceback(ValueError(str(value) + "a-key-of-somebody"), secrets)
        assert time.monotonic() - began < 1
        assert len(log) < 20_000
        hides(log)
        secrets = Secrets()


@pytest.mark.parametrize("start", [b'{"input": [', b'{"input": [x'])
@pytest.mark.parametrize("item", [b'"",', b"[],", b'{"role":"x"},'])
def test_nor_do_very_many_small_things(start: bytes, item: bytes) -> None:
    secrets = Secrets()
    secrets.read(start + b'"' + WORDS_OF_HIS.encode() + b'",' + item * 400_000 + b"1]}")
    began = time.monotonic()
    assert secrets.masked(f"no: {WORDS_OF_HIS}") == "no: <text>"
    assert time.monotonic() - began < 1


def test_frames_stay_though_somebody_asks_with_a_traceback_as_prompt() -> None:
    """Nobody can blind the log: lines of code are no values."""
    with pytest.raises(ValueError, match="doctor") as caught:
        raise ValueError(PROMPT)
    bare = loggable_traceback(caught.value)
    secrets = Secrets()
    secrets.read(json.dumps({"prompt": bare.encode().decode("unicode_escape"), "input": PROMPT}).encode())
    seen = loggable_traceback(caught.value, secrets)
    assert seen.splitlines()[:3] == bare.splitlines()[:3]
    assert seen.endswith("<text>")


async def test_nothing_of_it_is_in_the_records_either(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "lastword_shim"):
        async with serving(quoting(str)) as server:
            await server.ask(BODIES["chat"][1])
            record = await server.one_record()
    hides(json.dumps(record))
