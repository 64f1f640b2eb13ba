"""The public surface: names, types, and what importing costs."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from tests.sdk.wire import DONE, MESSAGES, chunk, client_for

import lastword
from lastword import Client, InvalidToolArguments, LastwordError, Timeouts
from lastword.testing import ScriptedServer, answer, failure
from lastword.testing import stream as script


def test_all_names_exist_and_nothing_else_is_public() -> None:
    """``__all__`` is the surface."""
    plumbing = {"TYPE_CHECKING", "annotations", "import_module"}
    found = {name: getattr(lastword, name) for name in dir(lastword) if not name.startswith("_")}
    public = {name for name, value in found.items() if not isinstance(value, ModuleType)} - plumbing
    assert set(lastword.__all__) == public | {"__version__"}


def test_importing_lastword_loads_no_openai() -> None:
    """openai's types are loaded when the first answer needs them, and not before."""
    code = (
        "import sys, lastword; lastword.Client, lastword.AsyncClient;"
        "print([m for m in sys.modules if m.split('.')[0] in ('openai', 'httpx2')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


FIRST_CALLS = """
import sys, threading, time
from lastword import _models

class Slow:  # the first thread is held up where it begins to load the package, so that the others begin too
    def find_spec(self, name, path=None, target=None):
        if name == "openai":
            time.sleep(0.3)

def first_call(build):
    together.wait()
    build()

sys.meta_path.insert(0, Slow())
failures = []
threading.excepthook = failures.append
builders = [_models.completion, _models.chat_chunk, _models.chat_completion, _models.model_page, _models.async_model_page]
together = threading.Barrier(3 * len(builders))
threads = [threading.Thread(target=first_call, args=(each,)) for each in 3 * builders]
for each in threads: each.start()
for each in threads: each.join()
print([str(each.exc_value) for each in failures])
"""


def test_first_calls_of_many_threads_load_openai_once() -> None:
    """Threads whose first calls need different types of openai do not meet in its import cycles."""
    found = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_answers_are_openais_own_types() -> None:
    """Same classes, same values, unknown fields kept."""
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    with ScriptedServer([answer("hi"), script("hi")]) as server, client_for(server) as client:
        done = client.chat.completions.create(model="m", messages=MESSAGES)
        chunks = list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))
    assert type(done) is ChatCompletion
    assert {type(each) for each in chunks} == {ChatCompletionChunk}


def test_unknown_arguments_reach_the_server() -> None:
    """Unknown keyword arguments, extra_body, extra_headers, extra_query; an answer's message goes back as it came."""
    with ScriptedServer([answer("hi"), answer("ho")]) as server, client_for(server) as client:
        done = client.chat.completions.create(model="m", messages=MESSAGES)
        client.chat.completions.create(
            model="m",
            messages=[*MESSAGES, done.choices[0].message],
            top_k=3,
            extra_body={"guided_regex": "a+"},
            extra_headers={"X-Team": "red", "x-request-id": "abc-1"},
            extra_query={"v": "2"},
        )
    request = server.requests[1]
    body = json.loads(request.body)
    assert (body["top_k"], body["guided_regex"], body["messages"][1]["content"]) == (3, "a+", "hi")
    assert (request.headers["x-team"], request.headers["x-request-id"]) == ("red", "abc-1")
    assert request.path.endswith("?v=2")


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"extra_headers": {"x-request-id": "a b"}}, "x-request-id"),
        ({"extra_headers": {"x-a": "b\r\nc"}}, "x-a"),
        ({"extra_body": 3}, "extra_body"),
        ({"temperature": float("nan")}, "temperature"),
        ({"tools": [object()]}, "tools"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeouts": Timeouts()}, "timeouts"),
        ({"extra_body": {"stream": True}}, "extra_body.stream"),
    ],
)
def test_bad_input_is_refused_by_name_before_anything_is_sent(bad: dict[str, Any], named: str) -> None:
    """The error names the argument and is fixable."""
    with ScriptedServer() as server, client_for(server) as client, pytest.raises(LastwordError, match=named) as caught:
        client.chat.completions.create(model="m", messages=MESSAGES, **bad)
    assert (caught.value.category, caught.value.origin, server.connections) == ("fixable", "client", 0)


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"base_url": "localhost:8000"}, "base_url"), ({"profile": "nope"}, "profile"), ({"api_key": "a\nb"}, "api_key")],
)
def test_bad_settings_are_refused_by_name(settings: dict[str, Any], named: str) -> None:
    """A client that cannot work is not made."""
    with pytest.raises(ValueError, match=named):
        Client(**{"base_url": "http://127.0.0.1:1/v1", **settings})


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """LASTWORD_* before OPENAI_*."""
    with ScriptedServer([answer("hi")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        monkeypatch.setenv("LASTWORD_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "from-openai")
        with Client() as client:
            client.chat.completions.create(model="m", messages=MESSAGES)
    assert server.requests[0].headers["authorization"] == "Bearer from-openai"


def test_with_outcome_returns_instead_of_raising() -> None:
    """(value, Outcome) for a whole answer, good or bad; a stream's iteration ends and its outcome tells."""
    cut = {"status": 200, "steps": [chunk({"content": "Hel"})]}
    with (
        ScriptedServer([answer("hi"), failure(400, "invalid_request_error"), cut]) as server,
        client_for(server) as client,
    ):
        value, outcome = client.with_outcome.chat.completions.create(model="m", messages=MESSAGES)
        assert value is not None
        assert outcome.completed
        value, outcome = client.with_outcome.chat.completions.create(model="m", messages=MESSAGES)
        assert value is None
        assert (outcome.outcome, outcome.code) == ("failed", "invalid_request_error")
        stream, early = client.with_outcome.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        assert stream is not None
        assert early is None
        assert len(list(stream)) == 1
        assert stream.outcome is not None
        assert (stream.outcome.outcome, stream.outcome.code) == ("incomplete", "stream_incomplete")


def call_chunk(arguments: str, finish: str | None = None) -> dict[str, Any]:
    """A chunk with a piece of a tool call."""
    call = {"index": 0, "id": "t1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return chunk({"tool_calls": [call]}, finish)


def test_tool_calls_are_handed_over_whole_or_not_at_all() -> None:
    """Only after the choice has finished; cut by ``length`` they are withheld; what is no JSON raises."""
    streams = [
        {"status": 200, "steps": [call_chunk('{"a":'), call_chunk("1}", "tool_calls"), {"data": "[DONE]"}]},
        {"status": 200, "steps": [call_chunk('{"path":"/etc/ho', "length"), {"data": "[DONE]"}]},
        {"status": 200, "steps": [call_chunk("rm -rf", "tool_calls"), {"data": "[DONE]"}]},
    ]
    with ScriptedServer(streams) as server, client_for(server) as client:
        results = []
        for _ in streams:
            stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            assert stream.tool_calls == []
            list(stream)
            results.append(stream.tool_calls)
    assert [call.arguments for call in results[0]] == [{"a": 1}]
    assert results[1] == []
    with pytest.raises(InvalidToolArguments) as caught:
        _ = results[2][0].arguments
    assert caught.value.tool_call.raw_arguments == "rm -rf"


def test_n_choices_are_expected_and_not_only_seen() -> None:
    """n=2 and one finished choice is no whole answer."""
    with ScriptedServer([{"status": 200, "steps": [chunk({"content": "a"}), *DONE]}]) as server:
        with client_for(server) as client, pytest.raises(LastwordError) as caught:
            list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True, n=2))
    assert caught.value.details["unfinished_choices"] == [1]


def test_models_and_completions() -> None:
    """The other two endpoints."""
    models = {"status": 200, "steps": [{"json": {"object": "list", "data": [{"id": "m", "object": "model"}]}}]}
    text = {"index": 0, "text": "hi", "finish_reason": "stop"}
    body = {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [text]}
    with ScriptedServer([models, {"status": 200, "steps": [{"json": body}]}]) as server, client_for(server) as client:
        assert [model.id for model in client.models.list()] == ["m"]
        assert client.completions.create(model="m", prompt="x").choices[0].text == "hi"


def test_keys_and_prompts_are_not_in_messages() -> None:
    """What an error says of itself has no key and no prompt."""
    with ScriptedServer([failure(400, "invalid_request_error")]) as server:
        with Client(base_url=server.base_url, api_key="sk-secret") as client, pytest.raises(LastwordError) as caught:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "my prompt"}])
    said = f"{caught.value} {caught.value!r} {vars(caught.value)}"
    assert "sk-secret" not in said
    assert "my prompt" not in said


def test_bytes_that_are_no_utf8_are_shown_as_such() -> None:
    """A whole answer is read as forgivingly as a stream."""
    body = b'{"choices": [{"index": 0, "message": {"content": "a\xff"}, "finish_reason": "stop"}]}'
    exchange = {"status": 200, "steps": [{"base64": base64.b64encode(body).decode()}]}
    with ScriptedServer([exchange]) as server, client_for(server) as client:
        done = client.chat.completions.create(model="m", messages=MESSAGES)
    assert done.choices[0].message.content == "a\ufffd"
    assert server.requests[0].headers["accept-encoding"] == "identity"
