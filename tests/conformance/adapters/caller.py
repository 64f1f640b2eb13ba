"""The caller of an async library: has the answer so far in hand, and leaves or is cancelled when the case says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

Call = Mapping[str, Any]
Result = dict[str, Any]


class Left(Exception):
    """The caller has heard enough; raised where the answer is read, so that the library's own block closes it."""


class Heard:
    """What the caller has in hand; ``members`` are those of ``outcome.json`` that the library has a notion of."""

    def __init__(self, call: Call) -> None:
        self.text = ""
        self.begun = False  # the answer, as far as the caller can tell
        self.members: dict[str, Any] = {}
        self._events = (call["cancel"] or {}).get("after_events")

    def event_over(self) -> None:
        """An event was taken in; raises ``Left`` after the last one that the caller wants."""
        self._events = self._events and self._events - 1
        if self._events == 0:
            raise Left


async def make(
    case: Call,
    opened: Callable[[Call], AbstractAsyncContextManager[Any]],
    read: Callable[[Any, Call, Heard], Awaitable[None]],
    failure: Callable[[Exception], Result],
) -> Result:
    """Make the case's calls with one client, one after the other; what the last one came to.

    ``read`` reads an answer into what was heard.  If it ends without an exception, the call is completed: a library
    that says nothing has said that all is well.  A connection that failed after the answer had begun has cut it.
    """
    call = case["call"]
    async with opened(case) as client:
        for _ in range(call["repeat"]):
            heard = Heard(call)
            task = asyncio.ensure_future(read(client, call, heard))
            if "after_ms" in (call["cancel"] or {}):
                asyncio.get_running_loop().call_later(call["cancel"]["after_ms"] / 1000, task.cancel)
            try:
                await task
                word: Result = {"outcome": "completed", "code": None}
            except (Left, asyncio.CancelledError):
                word = {"outcome": "cancelled", "code": "cancelled"}
            except Exception as error:  # noqa: BLE001  whatever it is, the caller has noticed
                word = failure(error)
                if heard.begun and word["code"] == "connection_failed":
                    word |= {"outcome": "incomplete", "code": "stream_incomplete"}
    return {**word, "text": heard.text, **heard.members}
