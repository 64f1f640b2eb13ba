"""Asking a live server: bare HTTP, so that nothing of the SDK hides what is on the wire."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.servers import vllm
from tests.live.turns import go_first
from tests.live.vllm_server import VllmServer
from tests.shim.wire import Answer

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
CONTEXT = vllm.CONTEXT["tiny"]
MUCH = CONTEXT - 192
LONG: dict[str, Any] = {"model": "m", "prompt": "hello", "max_tokens": MUCH, "min_tokens": MUCH, "ignore_eos": True}
"""A completion that does not end while a test looks at it: `Asking.leave` it; ``n`` more makes it slower."""
GENERATED = "vllm:generation_tokens_total"


def chat(text: str = "hi", **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 8, "ignore_eos": True, **more}


@contextmanager
def frozen(server: VllmServer) -> Iterator[None]:
    """The engine stands still meanwhile, so that nothing ends while it is looked at."""
    server.signal_engine(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal_engine(signal.SIGCONT)


@contextmanager
def connected(
    server: VllmServer,
    body: object,
    *,
    path: str = COMPLETIONS,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60,
) -> Iterator[http.client.HTTPConnection]:
    """A connection with the request sent; closed on leaving, whatever the server is doing."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request("POST", path, sent, {"content-type": "application/json", **(headers or {})})
        yield connection
    finally:
        connection.close()


def ask(
    server: VllmServer,
    body: object,
    *,
    path: str = COMPLETIONS,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60,
) -> Answer:
    with connected(server, body, path=path, headers=headers, timeout=timeout) as connection:
        return read(connection.getresponse())


def read(response: http.client.HTTPResponse) -> Answer:
    body, complete = b"", True
    try:
        while part := response.read1(65536):
            body += part
    except (http.client.HTTPException, OSError):
        complete = False
    return Answer(response.status, [(name.lower(), value) for name, value in response.getheaders()], body, complete)


@dataclass
class Asking:
    """A request that runs in a thread of its own."""

    server: VllmServer
    body: dict[str, Any]
    path: str = COMPLETIONS
    headers: Mapping[str, str] | None = None
    begun: threading.Event = field(default_factory=threading.Event)
    answer: Answer | None = None
    ended_at: float = 0.0
    failure: Exception | None = None
    _connection: http.client.HTTPConnection | None = None

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        go_first()
        try:
            with connected(self.server, self.body, path=self.path, headers=self.headers) as connection:
                self._connection = connection
                response = connection.getresponse()
                self.begun.set()
                self.answer = read(response)
        except (OSError, http.client.HTTPException) as error:
            self.failure = error
        self.ended_at = time.monotonic()
        self.begun.set()

    def wait(self, seconds: float = 60) -> Answer:
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"no end after {seconds} s"
        assert self.answer is not None, self.failure
        return self.answer

    def leave(self) -> None:
        """Close its connection, as a caller does who has seen enough."""
        assert self._connection is not None
        assert self._connection.sock is not None
        self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(20)

    def goes_on(self) -> None:
        """The engine makes tokens again, or still."""
        before = self.server.metric(GENERATED)
        self.server.wait_for(lambda: self.server.metric(GENERATED) > before, "generation", 20)
        assert self._thread.is_alive()


def started(server: VllmServer, *, stream: bool, **more: Any) -> Asking:
    """A long completion that the engine is generating by now."""
    before = server.metric(GENERATED)
    asking = Asking(server, {**LONG, "stream": stream, **more})
    server.wait_for(lambda: server.metric(GENERATED) > before + 5, "generation", 20)
    if stream:
        assert asking.begun.wait(20)
    return asking
