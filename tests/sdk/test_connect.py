"""How a connection comes about, and what keeps it from doing so."""

from __future__ import annotations

import errno
import socket
import ssl
import subprocess
import sys
import textwrap
from typing import Any

import pytest
import trustme
from tests.sdk.raw import WHOLE, RawServer, client_of, http
from tests.sdk.wire import MESSAGES, takes

from lastword import AsyncClient, Client, ConnectionFailed, RetryPolicy, Timeouts
from lastword.testing import ScriptedServer


def test_a_socket_that_cannot_be_made_is_a_failed_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the last address, that is: a machine without IPv6 tries the next one of a server whose first is IPv6."""
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
        {"base_url": "ftp://user:s3cret@x/v1?key=s3cret"},
        {"base_url": "http://user:s3cret/x@h:0/v1?k=a\ns3cret"},
        {"base_url": "http://u:s3cret@h\u2100"},
        {"base_url": "http://u:s3cret#x@h/v1"},
        {"default_headers": {"x-count": 1}},
        {"default_headers": {"authorization": b"Bearer s3cret"}},
        {"api_key": b"bytes"},
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_refused_at_once_and_not_shown(wrong: dict[str, Any]) -> None:
    """By the constructor, and not by the first call with whatever error comes of it (port 99999 is 34463 to the system)."""
    with pytest.raises(ValueError, match=r"give|api_key") as refused:
        Client(**{"base_url": "http://127.0.0.1:1/v1", **wrong})
    assert "s3cret" not in str(refused.value)


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


async def ask(kind: str, options: dict[str, Any]) -> None:
    """One call, by the client of this kind."""
    if kind == "sync":
        with Client(**options) as client:
            client.chat.completions.create(model="m", messages=MESSAGES)
    else:
        async with AsyncClient(**options) as async_client:
            await async_client.chat.completions.create(model="m", messages=MESSAGES)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_certificate_that_is_not_trusted_is_met_once(kind: str) -> None:
    """The next attempt would meet it as well."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with (
        ScriptedServer([], tls=context) as server,
        pytest.raises(ConnectionFailed, match="certificate of the server is not trusted") as caught,
    ):
        await ask(kind, {"base_url": server.base_url, "api_key": "k"})
    assert not caught.value.retryable
    assert len(caught.value.attempts) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_an_error_that_is_being_handled_is_not_the_next_ones_cause(kind: str) -> None:
    """As where a second server is asked once the first has failed."""
    with RawServer(http(WHOLE)) as server:
        gone = {"base_url": server.base_url, "api_key": "k", "retry": RetryPolicy(base_delay=0.001)}

    def refuse() -> None:
        raise ssl.SSLCertVerificationError("CERTIFICATE_VERIFY_FAILED")

    try:
        refuse()
    except ssl.SSLCertVerificationError:
        with pytest.raises(ConnectionFailed, match="not reached") as caught:
            await ask(kind, gone)
    assert len(caught.value.attempts) == 3


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
