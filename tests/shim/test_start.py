"""Mounting: settings that cannot be used, engines that lack what the shim needs, and what an import costs."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import types
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shim.apps import Message, Receive, Scope, Send

from lastword._sse import SSEDecoder
from lastword_shim import Settings, Shim
from lastword_shim._settings import SettingsError, shown
from lastword_shim.protocol.frames import FrameSplitter

BAD = {
    "LASTWORD_QUEUE_TIMEOUT": ["soon", "0", "-1", "inf", "nan"],
    "LASTWORD_HOLD": ["-0.1", "x"],
    "LASTWORD_ENDPOINTS": ["perhaps"],
    "LASTWORD_RECORDS_MAX_BYTES": ["4095", "-1"],
    "LASTWORD_MAX_HEADER_BYTES": ["10"],
    "LASTWORD_MAX_INFLIGHT": ["0", "1.5"],
    "LASTWORD_MAX_QUEUED": ["-1"],
    "LASTWORD_MAX_BODY_BYTES": ["1e6", "0"],
    "LASTWORD_CONTEXT_POLICY": ["Reject", "cut"],
    "LASTWORD_OVERLOAD_STATUS": ["500", "4 2 9"],
    "LASTWORD_RECORDS": ["/no/such/folder/records.jsonl"],
}


async def refuses_to_start(shim: Shim) -> str:
    received = iter([{"type": "lifespan.startup"}])
    sent: list[Message] = []

    async def receive() -> Message:
        return next(received)

    async def send(message: Message) -> None:
        sent.append(message)

    await shim({"type": "lifespan"}, receive, send)
    (message,) = sent
    assert message["type"] == "lifespan.startup.failed"
    return str(message["message"])


async def never(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("the application was asked")


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
async def test_a_bad_setting_stops_the_start_and_is_named(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it held and what it takes; the application behind is never asked."""
    monkeypatch.setenv(name, value)
    message = await refuses_to_start(Shim(never))
    (takes,) = [takes for variable, takes, *_ in Settings.table() if variable == name]
    why = "cannot be opened for appending: " if name == "LASTWORD_RECORDS" else f"cannot be used: it takes {takes}"
    held = value if value == "500" else repr(value)  # by then it is a number
    assert message.startswith(f"lastword_shim: {name}={held} {why}")
    with pytest.raises(SettingsError, match=name):
        await Shim(never)({"type": "http", "path": "/v1/models", "method": "GET", "headers": []}, None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RECORDS_MAX_BYTES", "4096"), ("RECORDS_MAX_BYTES", "0"), ("RECORDS_KEEP", "1000"), ("MAX_HEADER_BYTES", "512"),
        ("MAX_QUEUED", "0"), ("MAX_INFLIGHT", "1"), ("HOLD", "0"), ("ENDPOINTS", "off"), ("OTEL", "on"),
    ],
)  # fmt: skip
def test_the_least_and_the_most_that_are_told_can_be_used(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"LASTWORD_{name}", value)
    assert shown(getattr(Settings.load(), name.lower())) == value


def test_a_standard_output_that_is_closed_takes_no_records() -> None:
    """Its number may be a client's socket by then."""
    code = "from lastword_shim import Settings; Settings.load()"
    argv = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", code]
    environment = {**os.environ, "LASTWORD_RECORDS": "-"}
    done = subprocess.run(argv, env=environment, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert done.stderr.splitlines()[-1].endswith("LASTWORD_RECORDS='-' cannot be used: standard output is closed")


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Seconds, bytes and words; an empty variable is none."""
    values = {
        "RECORDS": str(tmp_path / "r"),
        "QUEUE_TIMEOUT": "1.5",
        "OVERLOAD_STATUS": "429",
        "HOLD": "0",
        "MAX_QUEUED": "0",
        "IDLE_TIMEOUT": "",
    }
    for name, value in values.items():
        monkeypatch.setenv(f"LASTWORD_{name}", value)
    found = Settings.load()
    assert (found.queue_timeout, found.overload_status, found.hold, found.max_queued, found.idle_timeout) == (
        1.5,
        429,
        0.0,
        0,
        None,
    )


def test_importing_the_shim_costs_no_client() -> None:
    """The engine's process gets the pure core, not the SDK's HTTP libraries."""
    code = (
        "import sys, lastword_shim; print(sorted({'openai', 'httpx', 'httpx2', 'tenacity', 'vllm'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert done.stdout.strip() == "[]"


@given(
    st.lists(
        st.sampled_from([b"\n", b"\r", b"\r\n", b"data: x", b": c", b"event: e", b"data:", "data: é\u2028".encode()]),
        max_size=30,
    ),
    st.data(),
)
def test_frames_are_the_bytes_and_the_events_are_the_same(parts: list[bytes], data: st.DataObject) -> None:
    """However the bytes are cut: nothing added, dropped or moved, and the decoder sees what it would have seen."""
    body = b"".join(parts)
    splitter, decoder, frames, events = FrameSplitter(), SSEDecoder(), [], []
    at = 0
    while at < len(body):
        size = data.draw(st.integers(1, 8))
        frames += splitter.feed(body[at : at + size])
        at += size
    for frame in frames:
        found = decoder.feed(frame)
        assert len(found) <= 1
        events += found
    assert b"".join(frames) + splitter.rest() == body
    assert events == SSEDecoder().feed(body)


class Params:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(n=1, max_tokens=10, **values)


@pytest.mark.anyio
async def test_an_engine_that_lacks_everything_still_serves(vllm: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Each missing attribute is one line in the log that says what is off, and nothing else."""
    state = types.SimpleNamespace(engine_client=object())
    with caplog.at_level(logging.WARNING, "lastword_shim"):
        engine = vllm.VllmEngine(state)
        engine.attach(None)
    version, *lines = [record.getMessage() for record in caplog.records]
    assert version == "this is vLLM 0.99.0; lastword_shim is written against 0.32.x"
    assert len(lines) == 10
    assert all(line.startswith("this vLLM has no ") and ": " in line for line in lines)
    from lastword_shim.engine import Ticket

    assert engine.refresh(Ticket("x")) is False
    assert engine.max_model_len() is None
    assert engine.explain(RuntimeError("x")) is None


@pytest.mark.anyio
async def test_a_shutdown_that_fails_to_drain_still_stops_the_engine(vllm: Any) -> None:
    """Called in a thread as vLLM does it, and again in the loop, where waiting would block everything."""
    stopped: list[float | None] = []

    class Client:
        def shutdown(self, timeout: float | None = None) -> None:
            stopped.append(timeout)

    class Host:
        async def drain(self, timeout: float) -> None:
            await asyncio.sleep(0.1)
            raise RuntimeError("no")

    config = types.SimpleNamespace(timeout_graceful_shutdown=None)
    client = Client()
    engine = vllm.VllmEngine(types.SimpleNamespace(engine_client=client, server=types.SimpleNamespace(config=config)))
    engine.attach(Host())
    assert config.timeout_graceful_shutdown == vllm.stopping.GRACEFUL_SHUTDOWN  # the engine may die without a shutdown
    await asyncio.get_running_loop().run_in_executor(None, lambda: client.shutdown(timeout=5))
    client.shutdown(timeout=3)
    client.shutdown()
    assert stopped[0] is not None
    assert 4 < stopped[0] < 5
    assert stopped[1] == pytest.approx(3, abs=0.1)
    assert stopped[2] is None


@pytest.mark.anyio
async def test_what_an_engine_said_that_is_dead_by_now_is_its_death(vllm: Any) -> None:
    """Words that were lost on the way do not make it another fault."""
    from lastword._classify import make_error
    from lastword._codes import Code
    from lastword_shim.engine import Ticket

    client = types.SimpleNamespace(errored=False)
    engine = vllm.VllmEngine(types.SimpleNamespace(engine_client=client))
    said = make_error(Code.INTERNAL_SERVER_ERROR, "response already started")
    assert engine.restate(said, Ticket("x")) is said
    client.errored = True
    assert engine.restate(said, Ticket("x")).code == "engine_unavailable"
    refused = make_error(Code.INVALID_REQUEST_ERROR, "no")
    assert engine.restate(refused, Ticket("x")) is refused


async def abort(_: str) -> None: ...


@pytest.mark.anyio
async def test_tokens_of_another_request_of_the_same_id_are_not_counted(vllm: Any) -> None:
    """A body of the Responses API names its own id, and nothing keeps two from naming the same."""
    from lastword_shim.engine import Ticket, enter

    tokens = {"in-a": 3, "in-b": 500}
    counters = {name: types.SimpleNamespace(num_output_tokens=partial(tokens.get, name)) for name in tokens}
    states = {name: types.SimpleNamespace(detokenizer=counters[name], stats=None) for name in tokens}
    external = {"same": ["in-a", "in-b"]}
    step = asyncio.Event()

    async def generate(*_: object) -> AsyncIterator[Any]:
        await step.wait()
        yield types.SimpleNamespace(outputs=[types.SimpleNamespace(index=0, token_ids=[1, 2, 3])], metrics=None)

    processor = types.SimpleNamespace(request_states=states, external_req_ids=external)
    client = types.SimpleNamespace(generate=generate, abort=abort, output_processor=processor)
    engine = vllm.VllmEngine(types.SimpleNamespace(engine_client=client))
    engine.attach(None)

    async def one(ticket: Ticket) -> None:
        enter(ticket)
        async for _ in client.generate({"prompt_token_ids": [1]}, Params(), "same"):
            pass

    tickets = [Ticket("a"), Ticket("b")]
    running = [asyncio.create_task(one(ticket)) for ticket in tickets]
    await asyncio.sleep(0.01)
    assert [engine.refresh(ticket) for ticket in tickets] == [False, False]
    step.set()
    await asyncio.gather(*running)
    for ticket in tickets:
        engine.refresh(ticket)
        assert ticket.completion_tokens == 3
    assert not engine._generations._holders


@pytest.mark.anyio
async def test_what_a_dead_engine_had_made_is_counted(vllm: Any) -> None:
    """An answer in one piece is handed out at its end only, and there is none."""
    from lastword_shim.engine import Ticket, enter

    detokenizer = types.SimpleNamespace(num_output_tokens=lambda: 7)
    states = {"in-a": types.SimpleNamespace(detokenizer=detokenizer, stats=None)}

    async def generate(*_: object) -> AsyncIterator[Any]:
        if not states:
            yield
        raise RuntimeError("dead")

    processor = types.SimpleNamespace(request_states=states, external_req_ids={"a": ["in-a"]})
    client = types.SimpleNamespace(generate=generate, abort=abort, output_processor=processor)
    engine = vllm.VllmEngine(types.SimpleNamespace(engine_client=client))
    engine.attach(None)
    ticket = Ticket("a")
    enter(ticket)
    with pytest.raises(RuntimeError, match="dead"):
        async for _ in client.generate({"prompt_token_ids": [1]}, Params(), "a"):
            pass
    assert ticket.completion_tokens == 7
