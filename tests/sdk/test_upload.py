"""A refusal that comes while a large request is still being sent is read, believed and not asked for again."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from typing import Any

import pytest
from tests.sdk.raw import RawServer

from lastword import AsyncClient, Client, LastwordError, RequestTooLarge, RetryPolicy, Timeouts
from lastword._transport._upload import has_answered

REFUSAL = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n"
MESSAGES = [{"role": "user", "content": "x" * 20_000_000}]


def refused(answer: bytes, then: str, mode: str) -> tuple[LastwordError, RawServer]:
    """Upload 20 MB to a server that reads the head, answers, and then reads on, stalls, or closes with the rest unread."""
    over = threading.Event()

    def refuse(connection: socket.socket, _: int) -> bool:
        connection.sendall(answer)
        while then == "reads" and connection.recv(1 << 16):
            time.sleep(0.001)
        over.wait(0.2 if then == "closes" else 20)
        return False

    with RawServer(refuse, reads_bodies=False) as server:
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
        over.set()
    return caught.value, server


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("then", ["reads", "stalls", "closes"])
def test_an_early_refusal_is_read(mode: str, then: str) -> None:
    """The upload stops, the 413 is the answer, and nothing is sent again."""
    error, server = refused(REFUSAL, then, mode)
    assert isinstance(error, RequestTooLarge)
    assert server.connections == 1


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_informational_status_is_no_answer(mode: str) -> None:
    """The upload goes on after a 100 or 103; what counts comes after it."""
    error, _ = refused(b"HTTP/1.1 100 Continue\r\n\r\n" + REFUSAL, "reads", mode)
    assert isinstance(error, RequestTooLarge)


def test_without_a_descriptor_to_look_with_the_upload_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has used up its descriptors sees no early answer, and no raw OSError."""

    def dup(_: int) -> int:
        raise OSError("too many open files")

    here, there = socket.socketpair()
    with here, there:
        there.sendall(REFUSAL)
        assert has_answered(here)
        monkeypatch.setattr(os, "dup", dup)
        assert not has_answered(here)
    assert not has_answered(None)
