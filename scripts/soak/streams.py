"""The callers of one round: many streams at once, some of which leave at a point that a seed has drawn."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

AT_ONCE = 200
"""Connections that are being opened at a time."""
MORE = 100
QUEUED_FOR = 0.2
"""Seconds within which those leave that do so before the first token."""
_TOKEN = re.compile(rb'"content": ?"[^"]')


@dataclass(frozen=True, slots=True)
class Plan:
    """One stream: its id, and where its caller leaves.

    Attributes:
        name: the ``x-request-id``.
        leaves_after: content chunks that it still reads; 0: it leaves before the first token; None: it stays.
        in_mid_event: it leaves with half of the next event read.
        resets: it leaves by a reset of the connection, and not by an orderly end.
        moment: seconds that it waits before it leaves.
    """

    name: str
    leaves_after: int | None = None
    in_mid_event: bool = False
    resets: bool = False
    moment: float = 0.0


def plans(seed: int, number: int, *, streams: int, tokens: int) -> list[Plan]:
    """Round ``number``: a third leave, at points from before the first token to after as many as the others get."""
    chance = random.Random(f"{seed}/{number}")
    leaving = set(chance.sample(range(streams), streams // 3))
    return [
        Plan(
            name=f"soak-{number}-{index}",
            leaves_after=chance.randint(0, tokens) if index in leaving else None,
            in_mid_event=chance.random() < 0.3,
            resets=chance.random() < 0.5,
            moment=chance.random() * QUEUED_FOR,
        )
        for index in range(streams)
    ]


async def play(
    every: Sequence[Plan], port: int, *, tokens: int, when_all_are_in: Callable[[asyncio.Event], Awaitable[None]]
) -> list[str]:
    """Play all of them at once; a sentence for each stream that was to be whole and was not.

    ``when_all_are_in`` is awaited once every request has been sent; from the moment that it sets its event on, callers
    leave.
    """
    sent = asyncio.Semaphore(0)
    may_leave = asyncio.Event()
    opening = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_one(plan, port, tokens, opening, sent, may_leave)) for plan in every]
        for _ in every:
            await sent.acquire()
        await when_all_are_in(may_leave)
    return [said for task in tasks if (said := task.result()) is not None]


async def _one(
    plan: Plan, port: int, tokens: int, opening: asyncio.Semaphore, sent: asyncio.Semaphore, may_leave: asyncio.Event
) -> str | None:
    try:
        async with opening:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            # One that leaves asks for more, or a late reader would leave when its answer is over already.
            writer.write(_request(plan, tokens if plan.leaves_after is None else tokens * MORE))
            await writer.drain()
    finally:
        sent.release()
    try:
        if plan.leaves_after is None:
            return _judge(plan, await reader.read(), tokens)
        await may_leave.wait()
        for _ in range(plan.leaves_after):
            while not _TOKEN.search(await reader.readuntil(b"\n\n")):
                pass
        if plan.in_mid_event and plan.leaves_after:
            await reader.readuntil(b'"content"')
        elif not plan.leaves_after:
            await asyncio.sleep(plan.moment)
        return None
    finally:
        if plan.leaves_after is not None and plan.resets:
            connection: socket.socket = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


def _request(plan: Plan, tokens: int) -> bytes:
    asked = {"messages": [{"role": "user", "content": "Say something."}], "max_tokens": tokens, "stream": True}
    body = json.dumps(asked).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return f"{head}x-request-id: {plan.name}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def _judge(plan: Plan, answer: bytes, tokens: int) -> str | None:
    chunks = len(_TOKEN.findall(answer))
    whole = answer.startswith(b"HTTP/1.1 200") and chunks == tokens and answer.count(b"data: [DONE]") == 1
    return None if whole else f"{plan.name} was to be whole and has {chunks} of {tokens} tokens: {answer[-200:]!r}"
