"""Name lookup.  Nothing can interrupt ``getaddrinfo``, so it runs in a daemon thread that nobody waits for longer than the
timers allow, the end of the process included; an event loop's own lookup runs in a thread that ``asyncio.run`` waits for."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio

Addresses = list[tuple[Any, ...]]


def numeric(host: str, port: int) -> Addresses | None:
    """The address that ``host`` is; None if it is a name."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return None


def look_up(host: str, port: int, deliver: Callable[[Addresses | OSError], object]) -> None:
    """Look ``host`` up, and let another thread call ``deliver`` once, if the system ever answers."""

    def work() -> None:
        try:
            found: Addresses | OSError = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            found = OSError(f"the name {host!r} cannot be looked up: {error}")
        deliver(found)

    threading.Thread(target=work, name="lastword-lookup", daemon=True).start()


async def async_look_up(host: str, port: int) -> list[str]:
    """The addresses of ``host``.  Raises ``OSError`` if there are none."""
    if numeric(host, port) is not None:
        return [host]
    found: list[Addresses | OSError] = []
    arrived = anyio.Event()
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # another kind of event loop
        look_up(host, port, found.append)
        while not found:  # noqa: ASYNC110 (nothing that every kind of loop has wakes it from a thread)
            await anyio.sleep(0.01)
    else:

        def deliver(answer: Addresses | OSError) -> None:
            found.append(answer)
            with suppress(RuntimeError):  # the loop is closed, and whoever waited has gone
                loop.call_soon_threadsafe(arrived.set)

        look_up(host, port, deliver)
        await arrived.wait()
    if isinstance(found[0], OSError):
        raise found[0]
    return [str(place[0]) for *_, place in found[0]]
