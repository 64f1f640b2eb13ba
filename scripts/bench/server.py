"""A loopback server for `bench.py`: each POST is answered with a chat stream of `max_tokens` chunks, as vLLM 0.32 writes them.

Each event is one HTTP chunk, as uvicorn sends it. The bytes of an answer are made once and kept, so that the server costs
the client nothing. `user: "paced"` in the request has each event sent by itself, a moment after the last, so that the client
reads them one by one as from a real engine; otherwise everything goes out as fast as the client takes it.

Run as a program it prints its port and serves until its standard input closes.
"""

from __future__ import annotations

import functools
import json
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
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"


def word(number: int) -> str:
    return WORDS[number % len(WORDS)]


def event(**members: Any) -> bytes:
    """One HTTP chunk with one server-sent event."""
    body = {
        "id": "chatcmpl-aa8a30b8c96c3ae3",
        "object": "chat.completion.chunk",
        "created": 1795972849,
        "model": "m",
        **members,
    }
    return frame(json.dumps(body, separators=(",", ":")))


def frame(data: str) -> bytes:
    payload = f"data: {data}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(payload), payload)


@functools.cache
def answer(chunks: int) -> tuple[bytes, ...]:
    """The frames of a stream with that many content chunks: a role first, a finish_reason in the last, usage, [DONE]."""
    head = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    frames = [event(choices=[head], prompt_token_ids=None, prompt_text=None)]
    for number in range(chunks):
        choice: dict[str, Any] = {"index": 0, "delta": {"content": word(number)}, "logprobs": None}
        choice |= {"finish_reason": None} if number < chunks - 1 else {"finish_reason": "stop", "stop_reason": None}
        frames.append(event(choices=[{**choice, "token_ids": None}]))
    usage = {"prompt_tokens": 37, "total_tokens": 37 + chunks, "completion_tokens": chunks}
    frames.append(event(choices=[], usage=usage, system_fingerprint="vllm-0.32.0"))
    return (*frames, frame("[DONE]"), b"0\r\n\r\n")


def read_request(connection: socket.socket, held: bytes) -> tuple[dict[str, Any], bytes] | None:
    """One request's JSON body and the bytes after it; None when the client has gone."""
    while b"\r\n\r\n" not in held:
        if not (more := connection.recv(65536)):
            return None
        held += more
    head, _, body = held.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    length = int(fields[b"content-length"])
    while len(body) < length:
        body += connection.recv(65536)
    request: dict[str, Any] = json.loads(body[:length])
    return request, body[length:]


def serve(connection: socket.socket) -> None:
    """Answer one connection's requests until it closes."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    held = b""
    with connection:
        while asked := read_request(connection, held):
            request, held = asked
            frames = answer(request["max_tokens"])
            if request.get("user") == "paced":
                send_paced(connection, frames)
            else:
                connection.sendall(HEAD + b"".join(frames))


def send_paced(connection: socket.socket, frames: tuple[bytes, ...]) -> None:
    connection.sendall(HEAD)
    due = time.perf_counter()
    for part in frames:
        due += PACE
        while time.perf_counter() < due:  # a sleep this short is too coarse; the server has a core of its own
            pass
        connection.sendall(part)


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
