"""Answers that are wrong in ways no client library sends: none of them may become a wrong last word."""

from __future__ import annotations

import errno
import json
import socket
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from tests.sdk.raw import WHOLE, RawServer, event, http
from tests.sdk.wire import AT_ONCE, MESSAGES, SHORT, chunk, takes

from lastword import (
    AsyncClient,
    AuthenticationError,
    Client,
    ConnectionFailed,
    InvalidRequest,
    LastwordError,
    RequestTimeout,
    RetryPolicy,
    Timeouts,
)

HELLO = event(chunk({"content": "Hello"})["data"]) + event(chunk({}, "stop")["data"]) + event(b"[DONE]")
REFUSED = json.dumps({"error": {"message": "no such key", "code": "unauthorized"}}).encode()


def client_of(server: RawServer, attempts: int = 3, **options: object) -> Client:
    """A client whose retries come at once."""
    retry = RetryPolicy(max_attempts=attempts, base_delay=0.01, max_delay=0.02)
    return Client(base_url=server.base_url, api_key="the-key", retry=retry, timeouts=SHORT, **options)  # type: ignore[arg-type]


BROKEN_BODIES = {
    "cut": http(REFUSED, status="401 Unauthorized", more=20),
    "no-gzip": http(REFUSED, "content-encoding: gzip", status="401 Unauthorized"),
    "no-chunks": b"HTTP/1.1 401 Unauthorized\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n" + REFUSED,
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("body", BROKEN_BODIES)
def test_a_refusal_whose_body_breaks_off_is_still_a_refusal(body: str, stream: bool) -> None:
    """The status has said no already: that is neither an incomplete answer nor worth a second request."""
    with RawServer(BROKEN_BODIES[body]) as server, client_of(server) as client:
        with pytest.raises(AuthenticationError):
            client.chat.completions.create(model="m", messages=MESSAGES, stream=stream)
        assert len(server.heads) == 1


@pytest.mark.parametrize("location", ["http://[::1", "//[", "http://[bad]/x", "http://127.0.0.1:99999/"])
def test_a_redirect_to_what_is_no_address_is_an_error_that_says_so(location: str) -> None:
    """And not a bare ValueError with the connection left open."""
    moved = http(b"", f"location: {location}", status="307 Temporary Redirect")
    with RawServer(moved) as server, client_of(server) as client:
        with pytest.raises(InvalidRequest) as caught:
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert location in caught.value.message


def test_no_key_of_any_name_follows_a_redirect_to_another_server() -> None:
    """Gateways take keys in headers of their own; only what every server may know goes along."""
    headers = {"api-key": "secret", "x-api-key": "secret", "cookie": "secret"}
    with RawServer(http(WHOLE)) as other:
        moved = http(b"", f"location: {other.base_url}/chat/completions", status="307 Temporary Redirect")
        with RawServer(moved) as server, client_of(server, default_headers=headers) as client:
            client.chat.completions.create(model="m", messages=MESSAGES, extra_headers={"x-token": "secret"})
            assert "secret" in server.heads[0]
        assert "secret" not in other.heads[0]
        assert "the-key" not in other.heads[0]
        assert "x-request-id" in other.heads[0]


def test_a_header_that_a_proxy_adds_once_more_counts_once() -> None:
    """Two content types that agree are no other content type, and two words against a retry are a word against it."""
    twice = http(HELLO, "content-type: text/event-stream", kind="text/event-stream")
    with RawServer(twice) as server, client_of(server) as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        assert [part.choices[0].delta.content for part in stream] == ["Hello", None]
    busy = http(b"{}", "x-should-retry: false", "x-should-retry: false", status="503 Busy")
    with RawServer(busy) as server, client_of(server) as client:
        with pytest.raises(LastwordError):
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert len(server.heads) == 1


def test_what_a_server_sends_behind_its_answer_is_nobodys_answer() -> None:
    """A second response in the same breath would become the answer to the next request on that connection."""
    extra = WHOLE.replace(b"Hello", b"for somebody else")

    def answer(connection: socket.socket, number: int) -> bool:
        connection.sendall(http(WHOLE) + (http(extra) if number == 1 else b""))
        return True

    with RawServer(answer) as server, client_of(server) as client:
        for _ in range(3):
            done = client.chat.completions.create(model="m", messages=MESSAGES)
            assert done.choices[0].message.content == "Hello"
        assert server.connections == 2


@pytest.mark.anyio
async def test_what_a_server_sends_behind_its_answer_is_nobodys_answer_async() -> None:
    """The same for the async client, with a stream in chunked framing."""
    extra = HELLO.replace(b"Hello", b"for somebody else")

    def answer(connection: socket.socket, number: int) -> bool:
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(HELLO), HELLO)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.sendall(head + chunked + (http(extra, kind="text/event-stream") if number == 1 else b""))
        return True

    with RawServer(answer) as server:
        async with AsyncClient(base_url=server.base_url, api_key="k", timeouts=SHORT) as client:
            for _ in range(3):
                stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
                async for _ in stream:
                    pass
                assert stream.text == "Hello"
        assert server.connections == 2


FLOODS = {
    "comments": b": ping\n\n" * 5000,
    "pings": event({"ping": 1}) * 3000,
    "empty deltas": event(chunk({"content": ""})["data"]) * 1000,
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_without_content_holds_no_timer_up(flood: str) -> None:
    """The time it takes to read what the server sends is the server's, not the caller's."""

    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            connection.sendall(FLOODS[flood])

    timeouts = Timeouts(connect=5, first_token=0.3, idle=5, total=8)
    with RawServer(answer) as server, client_of(server) as client, takes(0.3, 0.3 + AT_ONCE):
        with pytest.raises(RequestTimeout) as caught:
            for _ in client.chat.completions.create(model="m", messages=MESSAGES, stream=True, timeout=timeouts):
                pass
        assert caught.value.timer == "first_token"


def test_a_page_of_titles_is_read_at_once() -> None:
    """Looking for the end of each title in all that follows would take minutes that no timer sees."""
    page = http(b"<title>" * 140_000, status="502 Bad Gateway", kind="text/html")
    with RawServer(page) as server, client_of(server, 1) as client, takes(0, AT_ONCE):
        with pytest.raises(LastwordError) as caught:
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert caught.value.code == "bad_gateway"


def test_an_integer_beyond_every_float_is_kept_as_it_came() -> None:
    """Where the openai package's type has a float."""
    huge = 10**400
    logprobs = {"content": [{"token": "a", "logprob": huge, "bytes": None, "top_logprobs": []}]}
    answer = json.loads(WHOLE)
    answer["choices"][0]["logprobs"] = logprobs
    with RawServer(http(json.dumps(answer).encode())) as server, client_of(server) as client:
        done = client.chat.completions.create(model="m", messages=MESSAGES)
        assert done.choices[0].model_dump()["logprobs"]["content"][0]["logprob"] == huge


def test_no_free_descriptor_is_a_failed_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is a machine without IPv6 where the server's first address is one: the next address is tried."""
    create = socket.socket

    def refuse(family: int = -1, *rest: Any, **options: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return create(family, *rest, **options)

    def both(*_: Any, **__: Any) -> list[Any]:
        port = int(server.base_url.split(":")[2].split("/")[0])
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]

    with RawServer(http(WHOLE)) as server, client_of(server, 1) as client:
        with monkeypatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", both)
            patch.setattr(socket, "socket", refuse)
            client.chat.completions.create(model="m", messages=MESSAGES)
            patch.setattr(socket, "getaddrinfo", lambda *_, **__: both()[:1])
            with pytest.raises(ConnectionFailed):
                client.chat.completions.create(model="m", messages=MESSAGES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "http://127.0.0.1:99999/v1"},
        {"base_url": "http://127.0.0.1:x/v1"},
        {"default_headers": {"x-count": 1}},
        {"api_key": b"bytes"},
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_refused_at_once(wrong: dict[str, Any]) -> None:
    """By the constructor, and not by the first call with whatever error comes of it (port 99999 is 34463 to the system)."""
    with pytest.raises(ValueError, match=r"give|api_key"):
        Client(**{"base_url": "http://127.0.0.1:1/v1", **wrong})


def two_addresses(port: int) -> Any:
    """A resolver for a host whose first address is silent."""
    real = socket.getaddrinfo

    def resolve(host: str, *rest: Any, **options: Any) -> Any:
        if host != "two.test":
            return real(host, *rest, **options)
        if options.get("flags") == socket.AI_NUMERICHOST:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ("127.0.0.2", "127.0.0.1")]

    return resolve


def silent(port: int) -> list[socket.socket]:
    """Fill the backlog of 127.0.0.2, so that nobody else gets an answer there."""
    sockets = [socket.create_server(("127.0.0.2", port), backlog=0)]
    for _ in range(4):
        sockets.append(socket.socket())
        sockets[-1].setblocking(False)
        sockets[-1].connect_ex(("127.0.0.2", port))
    return sockets


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_silent_address_leaves_time_for_the_next(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host has several; the first may be of a network that drops everything, as IPv6 often is."""
    options: Any = {"api_key": "k", "timeouts": Timeouts(connect=1), "retry": RetryPolicy(max_attempts=1)}
    with RawServer(http(WHOLE)) as server:
        port = int(server.origin.rsplit(":", 1)[1])
        sockets = silent(port)
        monkeypatch.setattr(socket, "getaddrinfo", two_addresses(port))
        with takes(0.2, 1.0):
            if kind == "sync":
                with Client(base_url=f"http://two.test:{port}/v1", **options) as client:
                    client.chat.completions.create(model="m", messages=MESSAGES)
            else:
                async with AsyncClient(base_url=f"http://two.test:{port}/v1", **options) as async_client:
                    await async_client.chat.completions.create(model="m", messages=MESSAGES)
        for each in sockets:
            each.close()


def test_a_resolver_that_hangs_does_not_keep_an_async_program_alive() -> None:
    """asyncio.run waits for the threads in which loops look names up."""
    program = """
        import asyncio, socket, time
        from lastword import AsyncClient, RequestTimeout, RetryPolicy, Timeouts

        real = socket.getaddrinfo
        def resolve(host, *rest, **options):
            if host == "hangs.test" and options.get("flags") != socket.AI_NUMERICHOST:
                time.sleep(60)
            return real(host, *rest, **options)
        socket.getaddrinfo = resolve

        async def main():
            retry, timeouts = RetryPolicy(max_attempts=1), Timeouts(connect=0.3)
            async with AsyncClient(base_url="http://hangs.test/v1", api_key="k", retry=retry, timeouts=timeouts) as client:
                try:
                    await client.models.list()
                except RequestTimeout as error:
                    print(error.timer)

        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    assert subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout == "connect\n"


def test_a_lost_connection_is_no_timer_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's ETIMEDOUT is a TimeoutError too; it says that the network lost the connection."""

    class Losing(socket.socket):
        def recv(self, *_: Any) -> bytes:
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    with RawServer(http(WHOLE)) as server, client_of(server, 1) as client:
        client.chat.completions.create(model="m", messages=MESSAGES)
        with monkeypatch.context() as patch:
            patch.setattr("lastword._transport._sync.socket.socket", Losing)
            with pytest.raises(ConnectionFailed):
                client.chat.completions.create(model="m", messages=MESSAGES)
