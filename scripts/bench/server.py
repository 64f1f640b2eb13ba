"""A loopback server for the bench: each POST is answered with a chat stream of `max_tokens` chunks, as vLLM 0.32 writes them.

Each event is one HTTP chunk, as uvicorn sends it. The bytes of an answer are made once and kept, so that the server costs
the client nothing. The first message says how they are sent: ``paced``, one by one, a moment after the last, so that the
client reads them one by one as from a real engine; ``each``, one by one as fast as they are taken; ``stamped``, one by one at
an engine's pace, and the text of each is the time at which it was sent; else all at once. Anything but a POST gets ``{}``.

Run as a program it prints its port and serves until its standard input closes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import socket
import sys
import threading
import time
from typing import Any

WORDS = (
    "The",
    " capital",
    " of",
    " France",
    " is",
    " Paris",
    ",",
    " and",
    " the",
    " river",
    " there",
    " is",
    " the",
    " Seine",
    ".",
)
PACE = 100e-6  # seconds between two events; a client needs less than that for one
ENGINE_PACE = 0.01
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"


def word(number: int) -> str:
    return WORDS[number % len(WORDS)]


def event(**members: Any) -> bytes:
    """One server-sent event."""
    body = {
        "id": "chatcmpl-aa8a30b8c96c3ae3",
        "object": "chat.completion.chunk",
        "created": 1795972849,
        "model": "m",
        **members,
    }
    return f"data: {json.dumps(body, separators=(',', ':'))}\n\n".encode()


def frame(payload: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(payload), payload)


@functools.cache
def event_data(chunks: int) -> tuple[bytes, ...]:
    """The events of a stream with that many content chunks: a role first, a finish_reason in the last, usage, [DONE]."""
    head = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    events = [event(choices=[head], prompt_token_ids=None, prompt_text=None)]
    for number in range(chunks):
        choice: dict[str, Any] = {"index": 0, "delta": {"content": word(number)}, "logprobs": None}
        choice |= {"finish_reason": None} if number < chunks - 1 else {"finish_reason": "stop", "stop_reason": None}
        events.append(event(choices=[{**choice, "token_ids": None}]))
    usage = {"prompt_tokens": 37, "total_tokens": 37 + chunks, "completion_tokens": chunks}
    events.append(event(choices=[], usage=usage, system_fingerprint="vllm-0.32.0"))
    return (*events, b"data: [DONE]\n\n")


@functools.cache
def answer(chunks: int) -> tuple[bytes, ...]:
    """The same, each event as one HTTP chunk, and the last chunk."""
    return (*map(frame, event_data(chunks)), b"0\r\n\r\n")


def read_request(connection: socket.socket, held: bytes) -> tuple[dict[str, Any], bytes] | None:
    """One request's JSON body, empty if it has none, and the bytes after it; None when the client has gone."""
    while b"\r\n\r\n" not in held:
        if not (more := connection.recv(65536)):
            return None
        held += more
    head, _, body = held.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    length = int(fields.get(b"content-length", 0))
    while len(body) < length:
        body += connection.recv(65536)
    request: dict[str, Any] = json.loads(body[:length] or b"{}")
    return request, body[length:]


def serve(connection: socket.socket) -> None:
    """Answer one connection's requests until it closes."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    held = b""
    with connection, contextlib.suppress(ConnectionError):
        while asked := read_request(connection, held):
            request, held = asked
            if "max_tokens" not in request:
                connection.sendall(NOTHING)
                continue
            frames = answer(request["max_tokens"])
            if (send := MODES.get(request["messages"][0]["content"])) is not None:
                connection.sendall(HEAD)
                send(connection, frames)
            else:
                connection.sendall(HEAD + b"".join(frames))


def send_paced(connection: socket.socket, frames: tuple[bytes, ...]) -> None:
    due = time.perf_counter()
    for part in frames:
        due += PACE
        while time.perf_counter() < due:  # a sleep this short is too coarse; the server has a core of its own
            pass
        connection.sendall(part)


def send_each(connection: socket.socket, frames: tuple[bytes, ...]) -> None:
    for part in frames:
        connection.sendall(part)


def send_stamped(connection: socket.socket, frames: tuple[bytes, ...]) -> None:
    for part in frames:
        time.sleep(ENGINE_PACE)
        stamped = STAMP.sub(b'"content":"%.7f"' % time.monotonic(), part.partition(b"\r\n")[2].removesuffix(b"\r\n"))
        connection.sendall(frame(stamped) if stamped else part)


MODES = {"paced": send_paced, "each": send_each, "stamped": send_stamped}
STAMP = re.compile(rb'"content":"[^"]+"')
NOTHING = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        sys.stdin.read()


def accept(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
