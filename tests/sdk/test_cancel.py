"""Whoever stops caring closes the socket at once, and whoever was blocked is told (CAN rules)."""

from __future__ import annotations

import gc
import ssl
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

import pytest
import trustme
from tests.sdk.wire import AT_ONCE, MESSAGES, SHORT, STALL, InThread, client_for, events

from lastword import Cancelled, Client, LastwordError, Timeouts
from lastword.testing import ScriptedServer

SILENT_BEFORE_HEADERS = {"before": [{"delay_ms": 20_000}], "status": 200, "steps": []}


@pytest.fixture(scope="module")
def tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's TLS context that trust each other."""
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    return server, client


@pytest.fixture(params=["plain", "tls"])
def wire(
    request: pytest.FixtureRequest, tls: tuple[ssl.SSLContext, ssl.SSLContext]
) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """Each test once without and once with TLS."""
    return tls if request.param == "tls" else (None, None)


Wire = tuple[ssl.SSLContext | None, ssl.SSLContext | None]


def test_close_from_another_thread_wakes_a_reader_in_mid_body(wire: Wire) -> None:
    """A reader blocked in the body gets Cancelled at once, keeps its text, and the server sees the socket close."""
    with ScriptedServer([events("Hel", end=STALL)], tls=wire[0]) as server:
        client = client_for(server, ssl_context=wire[1], timeouts=SHORT)
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        reader = InThread(lambda: list(stream))
        assert server.wait_for(lambda: stream.text == "Hel")
        time.sleep(0.1)
        closed_at = time.monotonic()
        stream.close()
        error = reader.join()
        assert isinstance(error, Cancelled)
        assert time.monotonic() - closed_at < AT_ONCE
        gone_at = server.wait_disconnected()
        assert gone_at is not None
        assert gone_at - closed_at < AT_ONCE
        assert error.partial.text == "Hel"
        assert stream.outcome is not None
        assert stream.outcome.outcome == "cancelled"
        client.close()


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_client_close_wakes_a_call_that_waits_for_headers(wire: Wire, stream: bool) -> None:
    """Nobody has a stream to close yet, so the client's close is what ends the wait."""
    with ScriptedServer([SILENT_BEFORE_HEADERS], tls=wire[0], strict=False) as server:
        client = client_for(server, ssl_context=wire[1], timeouts=SHORT)
        caller = InThread(lambda: client.chat.completions.create(model="m", messages=MESSAGES, stream=stream))
        assert server.wait_for(lambda: len(server.requests) == 1)
        time.sleep(0.1)
        closed_at = time.monotonic()
        client.close()
        assert isinstance(caller.join(), Cancelled)
        assert time.monotonic() - closed_at < AT_ONCE
        assert server.wait_disconnected() is not None


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_client_close_wakes_a_call_that_is_connecting(stream: bool) -> None:
    """A connect that no SYN-ACK answers ends with the client."""
    with ScriptedServer(accepting="no") as server:
        client = client_for(server, timeouts=SHORT)
        caller = InThread(lambda: client.chat.completions.create(model="m", messages=MESSAGES, stream=stream))
        time.sleep(0.3)
        client.close()
        assert isinstance(caller.join(), Cancelled)
        assert caller.seconds < 0.3 + AT_ONCE


def test_client_close_wakes_a_tls_handshake(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """A server that accepts and then never speaks TLS."""
    with ScriptedServer(accepting="silent") as server:
        url = server.base_url.replace("http:", "https:")
        client = Client(base_url=url, ssl_context=tls[1], timeouts=SHORT)
        caller = InThread(lambda: client.chat.completions.create(model="m", messages=MESSAGES))
        time.sleep(0.3)
        client.close()
        assert isinstance(caller.join(), Cancelled)
        assert caller.seconds < 0.3 + AT_ONCE


def test_client_close_ends_a_wait_between_two_attempts() -> None:
    """A back-off of many seconds is not waited for."""
    answer = {"status": 503, "headers": {"retry-after": "30"}, "steps": [{"json": {"error": {"message": "busy"}}}]}
    with ScriptedServer([answer]) as server:
        client = client_for(server, attempts=3, timeouts=Timeouts(total=100))
        caller = InThread(lambda: client.chat.completions.create(model="m", messages=MESSAGES))
        assert server.wait_for(lambda: len(server.requests) == 1)
        time.sleep(0.2)
        client.close()
        assert isinstance(caller.join(), Cancelled)
        assert caller.seconds < AT_ONCE + 0.5


def _break(client: Client) -> None:
    stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    kept.append(stream)


def _return(client: Client) -> None:
    for chunk in client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
        if chunk.choices[0].delta.content:
            return


def _raise(client: Client) -> None:
    with pytest.raises(ZeroDivisionError):
        for _ in client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
            1 / 0  # noqa: B018


def _leave_with(client: Client) -> None:
    with client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream:
        next(stream)
        kept.append(stream)


def _close(client: Client) -> None:
    stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    next(iter(stream))
    stream.close()


def _drop(client: Client) -> None:
    client.chat.completions.create(model="m", messages=MESSAGES, stream=True)


kept: list[object] = []


@pytest.mark.parametrize("leave", [_break, _return, _raise, _leave_with, _close, _drop])
def test_leaving_a_stream_closes_its_socket_at_once(leave: Callable[[Client], None]) -> None:
    """However the caller leaves, even while it still holds the stream, the server sees the connection close."""
    kept.clear()
    with ScriptedServer([events("Hel", end=STALL)]) as server:
        client = client_for(server, timeouts=SHORT)
        left_after = time.monotonic()
        leave(client)
        gone_at = server.wait_disconnected()
        assert gone_at is not None
        assert gone_at - left_after < AT_ONCE
        client.close()


def test_a_closed_stream_never_ends_quietly() -> None:
    """Iterating a stream that was closed before its end raises Cancelled, each time."""
    with ScriptedServer([events("Hel", end=STALL)]) as server:
        client = client_for(server, timeouts=SHORT)
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        next(stream)
        stream.close()
        for _ in range(2):
            with pytest.raises(Cancelled):
                next(stream)
        with pytest.raises(Cancelled):
            list(stream)
        client.close()


def test_a_second_reader_is_refused_and_closes_nothing() -> None:
    """One reader at a time; whoever comes second does not end the first one's stream."""
    with ScriptedServer([events("Hel", end=STALL)]) as server:
        client = client_for(server, timeouts=SHORT)
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        reader = InThread(lambda: list(stream))
        assert server.wait_for(lambda: stream.text == "Hel")
        time.sleep(0.2)
        with pytest.raises(RuntimeError, match="one reader"):
            list(stream)
        assert stream.outcome is None
        stream.close()
        assert isinstance(reader.join(), Cancelled)
        client.close()


def test_a_closed_client_sends_nothing() -> None:
    """A call on a closed client is refused before anything is sent."""
    with ScriptedServer() as server:
        client = client_for(server)
        client.close()
        with pytest.raises(Cancelled):
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert server.connections == 0


def test_peeking_and_going_on_read_one_stream() -> None:
    """``next(stream)`` and a loop share the stream; nothing is lost or read twice."""
    from lastword.testing import stream as script

    with ScriptedServer([script("a", "b", "c")]) as server:
        client = client_for(server)
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        first = [next(stream), next(stream)]
        rest = list(stream)
        texts = [chunk.choices[0].delta.content or "" for chunk in (*first, *rest)]
        assert "".join(texts) == "abc"
        assert stream.outcome is not None
        assert stream.outcome.completed
        client.close()


EXIT = """
    import sys, threading
    from concurrent.futures import ThreadPoolExecutor
    from lastword import Client, Timeouts

    client = Client(base_url=sys.argv[1], timeouts=Timeouts(first_token=30, idle=30, total=30))
    reading = threading.Event()

    def read():
        for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
            print("chunk", flush=True)
            reading.set()

    {start}
    reading.wait()
"""


@pytest.mark.parametrize(
    "start",
    [
        "threading.Thread(target=read).start()",
        "threading.Thread(target=read, daemon=True).start()",
        "ThreadPoolExecutor().submit(read)",
    ],
    ids=["thread", "daemon", "pool"],
)
def test_the_process_exits_when_main_returns(start: str) -> None:
    """A thread that waits for a silent server does not hold the process."""
    with ScriptedServer([events("Hel", end=STALL)]) as server:
        code = textwrap.dedent(EXIT).format(start=start)
        begun = time.monotonic()
        process = subprocess.run(
            [sys.executable, "-c", code, server.base_url], capture_output=True, text=True, timeout=20, check=False
        )
        assert time.monotonic() - begun < 8
        assert process.returncode == 0, process.stderr
        assert "chunk" in process.stdout
        assert server.wait_disconnected() is not None


def test_nothing_is_left_behind() -> None:
    """Good, bad and abandoned streams leave no thread and no open connection when the client is closed."""
    from lastword.testing import stream as script

    with ScriptedServer([script("a"), events("Hel"), events("Hel", end=STALL)]) as server:
        threads = set(threading.enumerate())
        client = client_for(server, timeouts=SHORT)
        list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))
        with pytest.raises(LastwordError):
            list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))
        next(iter(client.chat.completions.create(model="m", messages=MESSAGES, stream=True)))
        client.close()
        del client
        gc.collect()
        assert server.wait_for(lambda: server.open_connections == 0)
        assert set(threading.enumerate()) <= threads
