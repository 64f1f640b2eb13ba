"""A refusal that comes while a large request is still being sent is read, believed and not asked for again."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from lastword import AsyncClient, Client, LastwordError, RequestTooLarge, RetryPolicy, Timeouts

REFUSAL = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n"
MESSAGES = [{"role": "user", "content": "x" * 20_000_000}]


class Refusing:
    """Reads the head of each request, sends ``answer``, and then reads on, stalls, or closes with the rest unread."""

    def __init__(self, answer: bytes, then: str) -> None:
        self.connections = 0
        self._answer, self._then = answer, then
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def close(self) -> None:
        self._over.set()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._refuse, args=(connection,), daemon=True).start()

    def _refuse(self, connection: socket.socket) -> None:
        with connection:
            connection.recv(1000)
            connection.sendall(self._answer)
            while self._then == "reads" and connection.recv(1 << 16):
                time.sleep(0.001)
            self._over.wait(0.2 if self._then == "closes" else 20)


def refused(server: Refusing, mode: str) -> LastwordError:
    options: dict[str, Any] = {
        "base_url": server.base_url,
        "retry": RetryPolicy(max_attempts=3, base_delay=0.01),
        "timeouts": Timeouts(total=30),
    }

    async def call() -> None:
        async with AsyncClient(**options) as client:
            await client.chat.completions.create(model="m", messages=MESSAGES)

    with pytest.raises(LastwordError) as caught:
        if mode == "sync":
            with Client(**options) as client:
                client.chat.completions.create(model="m", messages=MESSAGES)
        else:
            asyncio.run(call())
    return caught.value


@pytest.mark.parametrize(
    ("mode", "then"),
    [
        ("sync", "reads"),
        ("sync", "stalls"),
        ("sync", "closes"),
        ("async", "reads"),
        ("async", "stalls"),
        ("async", "closes"),
    ],
)
def test_an_early_refusal_is_read(mode: str, then: str) -> None:
    """The upload stops, the 413 is the answer, and nothing is sent again."""
    server = Refusing(REFUSAL, then)
    try:
        error = refused(server, mode)
    finally:
        server.close()
    assert isinstance(error, RequestTooLarge)
    assert server.connections == 1


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_informational_status_is_no_answer(mode: str) -> None:
    """The upload goes on after a 100 or 103; what counts comes after it."""
    server = Refusing(b"HTTP/1.1 100 Continue\r\n\r\n" + REFUSAL, "reads")
    try:
        error = refused(server, mode)
    finally:
        server.close()
    assert isinstance(error, RequestTooLarge)
