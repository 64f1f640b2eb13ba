"""Finalisers, signal handlers, forks and cancellations that come in the middle of anything: nothing hangs, nothing stays."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import signal
import socket
import ssl
import time
from typing import Any

import pytest
import uvloop
from tests.sdk.raw import WHOLE, Answer, RawServer, event, http
from tests.sdk.wire import AT_ONCE, MESSAGES, SHORT, InThread, chunk, takes

from lastword import AsyncClient, Cancelled, Client, RetryPolicy

STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
ENDLESS = STREAM_HEAD + event(chunk({"content": "Hel"})["data"])
REST = event(chunk({"content": "lo"}, "stop")["data"]) + event(b"[DONE]")
ONCE = RetryPolicy(max_attempts=1)
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # never used; a default one takes a while to load


def answering(data: bytes) -> Answer:
    """Sends the same on each request and keeps the connection."""

    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(data)
        return True

    return answer


def sync_client(server: RawServer) -> Client:
    """A client that asks once."""
    return Client(base_url=server.base_url, api_key="k", timeouts=SHORT, retry=ONCE, ssl_context=TLS)


def endless_first(connection: socket.socket, number: int) -> bool:
    """Answers every other request with a stream that does not end, the rest whole and at once."""
    connection.sendall(ENDLESS if number % 2 else http(WHOLE))
    return number % 2 == 0 or not connection.recv(1)


def test_a_stream_that_the_collector_ends_in_the_middle_of_another_call_holds_nobody_up() -> None:
    """The collector runs in whatever thread allocates, also inside the pool's lock: there a finaliser must not wait."""
    with RawServer(endless_first) as server, sync_client(server) as client:
        for allocations in range(1, 160, 3):
            stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            next(stream)
            gc.disable()
            holder: dict[str, Any] = {"stream": stream, "generator": iter(stream)}
            holder["holder"] = holder
            del stream, holder
            thresholds = gc.get_threshold()
            gc.set_threshold(gc.get_count()[0] + allocations, 1000, 1000)
            gc.enable()
            try:
                done = client.chat.completions.create(model="m", messages=MESSAGES)
            finally:
                gc.set_threshold(*thresholds)
            assert done.choices[0].message.content == "Hello"
            gc.collect()
        assert not client._transport._pool._requests


def test_a_signal_handler_may_close_the_client() -> None:
    """Wherever it interrupts the thread that is in a call: that call ends as cancelled."""
    with RawServer(answering(http(WHOLE))) as server:
        for number in range(60):
            client = sync_client(server)
            client.chat.completions.create(model="m", messages=MESSAGES)
            before = signal.signal(signal.SIGALRM, lambda *_, client=client: client.close())
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + number * 0.00005)
                with pytest.raises(Cancelled), takes(0, AT_ONCE):
                    while True:
                        client.chat.completions.create(model="m", messages=MESSAGES)
            finally:
                signal.signal(signal.SIGALRM, before)


forks = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # from Python 3.12 on


@forks
def test_the_end_of_a_forked_child_does_not_touch_the_parents_streams() -> None:
    """The child's copies of the sockets are closed, not shut down."""

    def slowly(connection: socket.socket, _: int) -> bool:
        connection.sendall(ENDLESS)
        time.sleep(0.4)
        connection.sendall(REST)
        return False

    with RawServer(slowly) as server, sync_client(server) as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        reader = InThread(lambda: [part.choices[0].delta.content for part in stream])
        time.sleep(0.1)
        child = multiprocessing.get_context("fork").Process(target=gc.collect)
        child.start()
        child.join(10)
        assert child.exitcode == 0
        time.sleep(0.6)
        assert reader.result == ["Hel", "lo"]


@forks
def test_parent_and_child_do_not_share_a_connection() -> None:
    """Else each would read the other's answer."""
    with RawServer(answering(http(WHOLE))) as server, sync_client(server) as client:
        client.chat.completions.create(model="m", messages=MESSAGES)

        def ask() -> None:
            client.chat.completions.create(model="m", messages=MESSAGES)

        child = multiprocessing.get_context("fork").Process(target=ask)
        child.start()
        child.join(10)
        assert child.exitcode == 0
        assert server.connections == 2
        ask()
        assert server.connections == 2


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.anyio
async def test_a_task_cancelled_at_any_of_its_steps_leaves_no_connection_behind(stream: bool) -> None:
    """Also in the middle of giving a connection back, and between opening one and using it."""
    answer = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n")
    answer += b"%x\r\n%s\r\n0\r\n\r\n" % (len(REST), REST)
    with RawServer(answering(answer if stream else http(WHOLE))) as server:
        client = AsyncClient(base_url=server.base_url, api_key="k", timeouts=SHORT, retry=ONCE, ssl_context=TLS)

        async def ask() -> None:
            result: Any = await client.chat.completions.create(model="m", messages=MESSAGES, stream=stream)
            if stream:
                async for _ in result:
                    pass

        await ask()
        for fresh in (True, False):
            for steps in range(60):
                if fresh:
                    await client._transport.aclose()
                task = asyncio.create_task(ask())
                for _ in range(steps):
                    await asyncio.sleep(0.0001 if steps % 3 else 0)
                task.cancel()
                await asyncio.wait([task])
        pool = client._transport._pool
        await ask()
        assert not pool._requests
        assert all(connection.is_idle() for connection in pool.connections)
        await client.aclose()
        await asyncio.sleep(0.1)
        assert server.gone == server.connections


@pytest.mark.anyio
async def test_an_abandoned_stream_is_closed_on_a_loop_that_keeps_its_sockets_to_itself() -> None:
    """uvloop's sockets refuse to be shut down by others."""
    with RawServer(answering(ENDLESS)) as server:

        async def leave() -> None:
            client = AsyncClient(base_url=server.base_url, api_key="k", timeouts=SHORT, retry=ONCE, ssl_context=TLS)
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            async for _ in stream:
                break
            await asyncio.sleep(0.2)
            assert str(stream.outcome) == "cancelled"
            assert server.gone == 1
            await client.aclose()

        await asyncio.to_thread(uvloop.run, leave())


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_outlives_the_event_loop_that_it_began_in() -> None:
    """A program that calls asyncio.run more than once: what the first loop left in the pool belongs to a loop that is closed."""
    with RawServer(answering(http(WHOLE))) as server:
        client = AsyncClient(base_url=server.base_url, api_key="k", timeouts=SHORT, retry=ONCE, ssl_context=TLS)

        async def ask() -> None:
            await client.chat.completions.create(model="m", messages=MESSAGES)

        for _ in range(3):
            asyncio.run(ask())
        asyncio.run(client.aclose())
    gc.collect()  # what the ended loops complain of belongs here
