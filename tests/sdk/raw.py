"""A server for bytes that no HTTP library would send: it answers each request with what the test wrote."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests.sdk.wire import SHORT

from lastword import Client, RetryPolicy

Answer = Callable[[socket.socket, int], bool]
"""Called with the connection and the number of the request (1, 2, …); returns whether the connection stays open."""

WHOLE = json.dumps(
    {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    }
).encode()


class RawServer:
    """Listens on the loopback interface, and reads each request whole or its head only.

    ``heads`` has each request's head in small letters, ``gone`` counts the connections that have ended.
    """

    def __init__(self, answer: Answer | bytes, *, reads_bodies: bool = True) -> None:
        self._reads_bodies = reads_bodies
        self._answer = answer if callable(answer) else _always(answer)
        self.heads: list[str] = []
        self.connections = 0
        self.gone = 0

    @property
    def origin(self) -> str:
        """``http://127.0.0.1:port``."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"{self.origin}/v1"

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while self._read_request(connection) and self._answer(connection, len(self.heads)):
                    pass
            except OSError:
                pass
        self.gone += 1

    def _read_request(self, connection: socket.socket) -> bool:
        data = b""
        while b"\r\n\r\n" not in data:
            data += (more := connection.recv(65536))
            if not more:
                return False
        head, _, body = data.partition(b"\r\n\r\n")
        text = head.decode("latin-1").lower()
        missing = int((text + "\r\ncontent-length: 0").split("content-length: ")[1].split("\r\n")[0]) - len(body)
        while self._reads_bodies and missing > 0:
            missing -= len(connection.recv(missing)) or missing
        self.heads.append(text)
        return True


def http(body: bytes, *fields: str, status: str = "200 OK", kind: str = "application/json", more: int = 0) -> bytes:
    """A response in content-length framing that promises ``more`` bytes than it has."""
    lines = (f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body) + more}", *fields)
    return "\r\n".join((*lines, "", "")).encode() + body


def event(value: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def _always(data: bytes) -> Answer:
    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(data)
        return False

    return answer


def client_of(server: RawServer, attempts: int = 3, **options: object) -> Client:
    """A client whose retries come at once."""
    retry = RetryPolicy(max_attempts=attempts, base_delay=0.01, max_delay=0.02)
    return Client(base_url=server.base_url, api_key="the-key", retry=retry, timeouts=SHORT, **options)  # type: ignore[arg-type]
