"""A server that is odd as bytes: hostile.py PORT MODE. It lists a model unless the mode says how it does not."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterable

ENGINE_ERROR = (
    '{"error": {"message": "no", "type": "invalid_request_error", "param": null, "code": "invalid_request_error", '
    '"category": "fixable", "retryable": false, "retry_after_ms": null, "request_id": "r", "origin": "engine", '
    f'"contract": "1", "details": {{"n": 1{"0" * 400}}}}}}}'
)
CHUNK = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}


def plain(body: str, *, status: int = 200, kind: str = "application/json", extra: str = "") -> bytes:
    head = f"HTTP/1.1 {status} Some\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
    return f"{head}{extra}\r\n{body}".encode("latin-1")


def endless(first: str, more: bytes) -> Iterable[bytes]:
    return itertools.chain([first.encode()], itertools.repeat(more))


def slow(answer: bytes) -> Iterable[bytes]:
    for each in answer:
        yield bytes([each])
        time.sleep(0.5)


MODELS = plain('{"object": "list", "data": [{"id": "m"}]}')
BARE, EVENTS = "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
LISTS: dict[str, Iterable[bytes]] = {
    "page": [plain("<html></html>", kind="text/html")],
    "redirect": [plain("", status=307, extra="location: /elsewhere\r\n")],
    "key-needed": [plain("", status=401)],
    "nested-list": [plain("[" * 200_000)],
    "empty-name": [plain('{"data": [{"id": ""}]}')],
    "closes": [],
    "endless-head": endless(BARE, b"x-a: %b\r\n" % (b"y" * 1000)),
    "endless-1xx": endless("", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "slow": slow(MODELS),
    "vast-context": [plain('{"data": [{"id": "m", "max_model_len": 1000000000000}]}')],
    "escapes": [plain(json.dumps({"data": [{"id": "m\ud800", "owned_by": "\x1b[31m\ud800\u202e"}]}))],
}
ANSWERS: dict[str, Iterable[bytes]] = {
    "endless-body": endless(f"{BARE}content-type: application/json\r\n\r\n{{", b" " * 65536),
    "endless-events": endless(EVENTS, b'data: {"choices": []}\n\n' * 1000),
    "two-lengths": [f"{BARE}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}".encode()],
    "bad-chunk": [f"{BARE}transfer-encoding: chunked\r\n\r\nzz\r\n{{}}".encode()],
    "odd-hints": [plain("{}", status=429, extra=f"retry-after: \xb2\r\nretry-after-ms: {'9' * 5000}\r\n")],
    "nested-error": [plain('{"error": {"message": ' + "[" * 200_000, status=400)],
    "vast-number": [plain(ENGINE_ERROR, status=400)],
    "from-cache": [plain(f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n", kind="text/event-stream")],
}  # fmt: skip


def answer(connection: socket.socket, mode: str) -> None:
    asked = b""
    with connection, contextlib.suppress(OSError):  # the client has had enough
        while b"\r\n\r\n" not in asked and (part := connection.recv(65536)):
            asked += part
        if mode == "resets":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        for part in what(mode, asked):
            connection.sendall(part)


def what(mode: str, asked: bytes) -> Iterable[bytes]:
    if mode == "silent":
        time.sleep(60)
    if asked.startswith(b"GET /v1/models"):
        return LISTS.get(mode, [MODELS])
    if asked.startswith(b"GET /metrics"):
        text = "vllm:num_requests_running 1e\nvllm:num_requests_waiting 1e999\n" if mode == "odd-metrics" else ""
        return [plain(text, kind="text/plain")]
    if asked.startswith(b"GET"):
        return [plain("", status=404)]
    if mode == "echo":
        return [plain(json.dumps({"error": {"message": asked.decode("latin-1")}}), status=401)]
    return ANSWERS.get(mode, [plain(json.dumps({"error": "\x1b[31m\ud800"}), status=500)])


def main() -> None:
    with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection, sys.argv[2]), daemon=True).start()


if __name__ == "__main__":
    main()
