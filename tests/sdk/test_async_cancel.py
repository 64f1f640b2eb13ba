"""The same as test_cancel for the async client: tasks in the place of threads."""

from __future__ import annotations

import asyncio
import gc
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trustme
from tests.sdk.wire import AT_ONCE, MESSAGES, SHORT, STALL, events

from lastword import AsyncClient, Cancelled, RetryPolicy, Timeouts
from lastword.testing import ScriptedServer

pytestmark = pytest.mark.anyio

SILENT_BEFORE_HEADERS = {"before": [{"delay_ms": 20_000}], "status": 200, "steps": []}


@pytest.fixture(scope="module")
def tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's TLS context that trust each other."""
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    return server, client


Wire = tuple[ssl.SSLContext | None, ssl.SSLContext | None]


@pytest.fixture(params=["plain", "tls"])
def wire(request: pytest.FixtureRequest, tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> Wire:
    """Each test once without and once with TLS."""
    return tls if request.param == "tls" else (None, None)


def async_client(server: ScriptedServer, **options: Any) -> AsyncClient:
    """A client that does not retry."""
    options.setdefault("timeouts", SHORT)
    return AsyncClient(base_url=server.base_url, api_key="k", retry=RetryPolicy(max_attempts=1), **options)


async def seen(server: ScriptedServer, condition: Callable[[], bool]) -> bool:
    """Wait for something to happen at the server."""
    return await asyncio.to_thread(server.wait_for, condition)


async def gone(server: ScriptedServer) -> float:
    """When the server saw the client leave."""
    at = await asyncio.to_thread(server.wait_disconnected)
    assert at is not None
    return at


async def read_all(stream: Any) -> list[Any]:
    """Every chunk."""
    return [chunk async for chunk in stream]


async def test_aclose_from_another_task_wakes_a_reader(wire: Wire) -> None:
    """A task blocked in the body gets Cancelled at once and the server sees the socket close."""
    with ScriptedServer([events("Hel", end=STALL)], tls=wire[0]) as server:
        async with async_client(server, ssl_context=wire[1]) as client:
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            reader = asyncio.create_task(read_all(stream))
            assert await seen(server, lambda: stream.text == "Hel")
            await asyncio.sleep(0.2)
            closed_at = time.monotonic()
            await stream.aclose()
            with pytest.raises(Cancelled) as caught:
                await reader
            assert caught.value.partial.text == "Hel"
            assert await gone(server) - closed_at < AT_ONCE
            assert stream.outcome is not None
            assert stream.outcome.outcome == "cancelled"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_client_close_wakes_a_call_that_waits_for_headers(wire: Wire, stream: bool) -> None:
    """Nobody has a stream to close yet, so the client's close is what ends the wait."""
    with ScriptedServer([SILENT_BEFORE_HEADERS], tls=wire[0], strict=False) as server:
        client = async_client(server, ssl_context=wire[1])
        call = asyncio.create_task(client.chat.completions.create(model="m", messages=MESSAGES, stream=stream))
        assert await seen(server, lambda: len(server.requests) == 1)
        closed_at = time.monotonic()
        await client.close()
        with pytest.raises(Cancelled):
            await call
        assert await gone(server) - closed_at < AT_ONCE


@pytest.mark.parametrize("accepting", ["no", "silent"], ids=["connect", "tls"])
async def test_client_close_wakes_a_call_that_is_connecting(
    accepting: Any, tls: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    """A connect without an answer, and a TLS handshake without one."""
    with ScriptedServer(accepting=accepting) as server:
        url = server.base_url.replace("http:", "https:" if accepting == "silent" else "http:")
        client = AsyncClient(base_url=url, ssl_context=tls[1], timeouts=SHORT)
        call = asyncio.create_task(client.chat.completions.create(model="m", messages=MESSAGES))
        await asyncio.sleep(0.3)
        started = time.monotonic()
        await client.close()
        with pytest.raises(Cancelled):
            await call
        assert time.monotonic() - started < AT_ONCE


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_cancelled_task_stays_cancelled_and_closes_the_socket(wire: Wire, stream: bool) -> None:
    """CancelledError is never turned into something else; the server sees the client leave at once."""
    with ScriptedServer([events("Hel", end=STALL)], tls=wire[0]) as server:
        async with async_client(server, ssl_context=wire[1]) as client:

            async def work() -> None:
                answer = await client.chat.completions.create(model="m", messages=MESSAGES, stream=stream)
                await read_all(answer)

            task = asyncio.create_task(work())
            assert await seen(server, lambda: len(server.requests) == 1)
            await asyncio.sleep(0.2)
            cancelled_at = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await gone(server) - cancelled_at < AT_ONCE


async def test_wait_for_cuts_a_call_short() -> None:
    """asyncio.timeout around a call works as it does for anything else."""
    with ScriptedServer([SILENT_BEFORE_HEADERS], strict=False) as server:
        async with async_client(server) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            assert await gone(server)


kept: list[object] = []


async def _break(client: AsyncClient) -> None:
    stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    kept.append(stream)


async def _return(client: AsyncClient) -> None:
    async for chunk in await client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
        if chunk.choices[0].delta.content:
            return


async def _leave_with(client: AsyncClient) -> None:
    async with await client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream:
        await anext(aiter(stream))
        kept.append(stream)


async def _close(client: AsyncClient) -> None:
    stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    await stream.__anext__()
    await stream.close()


async def _drop(client: AsyncClient) -> None:
    await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)


@pytest.mark.parametrize("leave", [_break, _return, _leave_with, _close, _drop])
async def test_leaving_a_stream_closes_its_socket_at_once(leave: Callable[[AsyncClient], Awaitable[None]]) -> None:
    """However the caller leaves, even while it still holds the stream, the server sees the connection close."""
    kept.clear()
    with ScriptedServer([events("Hel", end=STALL), events("x", end=STALL)], strict=False) as server:
        async with async_client(server) as client:
            left_after = time.monotonic()
            await leave(client)
            assert await gone(server) - left_after < AT_ONCE
            await _close(client)  # the next call tidies up what the last one left
            assert await seen(server, lambda: server.open_connections == 0)


def test_a_stream_abandoned_at_the_end_of_the_loop_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    """No task, no warning, no "event loop is closed" from a finaliser."""
    with ScriptedServer([events("Hel", end=STALL)]) as server:

        async def main() -> None:
            client = async_client(server)
            async for _ in await client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
                break

        asyncio.run(main())
        gc.collect()
        assert server.wait_disconnected() is not None
    assert capfd.readouterr().err == ""


async def test_a_closed_stream_never_ends_quietly() -> None:
    """Iterating a stream that was closed before its end raises Cancelled, each time."""
    with ScriptedServer([events("Hel", end=STALL)]) as server:
        async with async_client(server) as client:
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            await stream.__anext__()
            await stream.close()
            for _ in range(2):
                with pytest.raises(Cancelled):
                    await stream.__anext__()


async def test_a_wait_between_attempts_ends_with_the_client() -> None:
    """A back-off of many seconds is not waited for."""
    answer = {"status": 503, "headers": {"retry-after": "30"}, "steps": [{"json": {"error": {"message": "busy"}}}]}
    with ScriptedServer([answer]) as server:
        client = AsyncClient(base_url=server.base_url, timeouts=Timeouts(total=100))
        call = asyncio.create_task(client.chat.completions.create(model="m", messages=MESSAGES))
        assert await seen(server, lambda: len(server.requests) == 1)
        await asyncio.sleep(0.2)
        await client.close()
        with pytest.raises(Cancelled):
            async with asyncio.timeout(AT_ONCE):
                await call
