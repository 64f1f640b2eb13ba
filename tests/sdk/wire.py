"""What the SDK's wire tests share: short clients, endings, and stopwatches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lastword import Client, LastwordError, RetryPolicy, Timeouts
from lastword.testing import ScriptedServer

MESSAGES = [{"role": "user", "content": "hi"}]
AT_ONCE = 3.0
"""Seconds within which something that must happen at once is allowed to happen on a busy machine."""

STALL: dict[str, Any] = {"end": "stall"}


def client_for(server: ScriptedServer, *, attempts: int = 1, **options: Any) -> Client:
    """A client that does not retry unless ``attempts`` says so, and then after short waits."""
    retry = RetryPolicy(max_attempts=attempts, base_delay=0.01, max_delay=0.05)
    return Client(base_url=server.base_url, api_key="k", retry=options.pop("retry", retry), **options)


def events(*contents: str, end: Any = None) -> dict[str, Any]:
    """A streamed answer: a role chunk, contents, then ``end`` (default: nothing, so a clean end of the body)."""
    steps: list[dict[str, Any]] = [chunk({"role": "assistant", "content": ""})]
    steps += [chunk({"content": content}) for content in contents]
    return {"status": 200, "steps": [*steps, *([end] if end else [])]}


def chunk(delta: dict[str, Any], finish_reason: str | None = None, index: int = 0) -> dict[str, Any]:
    """One step that sends a chat chunk."""
    choice = {"index": index, "delta": delta, "finish_reason": finish_reason}
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return {"data": body}


DONE: list[dict[str, Any]] = [chunk({}, "stop"), {"data": "[DONE]"}]


class InThread:
    """Runs ``work`` in a thread and keeps how it ended and how long it took (seconds)."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.error: BaseException | None = None
        self.result: Any = None
        self.seconds = -1.0
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        started = time.monotonic()
        try:
            self.result = work()
        except BaseException as error:  # noqa: BLE001 (the test looks at it)
            self.error = error
        self.seconds = time.monotonic() - started

    def join(self, seconds: float = 5.0) -> LastwordError:
        """Wait for the end and return the LastwordError that ended it."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the call is still blocked"
        assert isinstance(self.error, LastwordError), self.error or self.result
        return self.error


@contextmanager
def takes(low: float, high: float) -> Iterator[None]:
    """The block takes between ``low`` and ``high`` seconds."""
    started = time.monotonic()
    yield
    seconds = time.monotonic() - started
    assert low <= seconds <= high, f"took {seconds:.2f} s"


SHORT = Timeouts(connect=5, first_token=5, idle=5, total=10)
