"""A server that is wrong on purpose: what it does depends on the case, which the suite names in a header.

broken.py PORT UPSTREAM [--on-sigterm ignore|die]
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ERROR: dict[str, Any] = {
    "message": "The request is not valid.", "type": "invalid_request_error", "param": None,
    "code": "invalid_request_error", "category": "fixable", "retryable": False, "retry_after_ms": None,
    "request_id": "r", "origin": "engine", "details": {}, "contract": "1",
}  # fmt: skip
FINISH = {"index": 0, "delta": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
UNFINISHED = json.dumps({"id": "c", "choices": [{**FINISH, "finish_reason": None}]})
CHUNK, DONE = json.dumps({"id": "c", "choices": [FINISH]}), "[DONE]"
WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(200, {"object": "list", "data": [{"id": "m"}]})

    def do_POST(self) -> None:
        self.asked = self.rfile.read(int(self.headers.get("content-length", 0)))
        case = self.headers.get("x-conformance-case", "")
        FAULTS.get(case, Handler.passes)(self)

    def answer(self, status: int, document: object, **headers: str) -> None:
        body = json.dumps(document).encode()
        self.head(status, {"content-type": "application/json", "content-length": str(len(body)), **headers})
        self.wfile.write(body)

    def stream(self, *events: str) -> None:
        self.head(200, {"content-type": "text/event-stream", "connection": "close"})
        for event in events:
            self.wfile.write(f"data: {event}\n\n".encode())
        self.close_connection = True

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def refuses(self, status: int = 400, **changed: object) -> None:
        self.answer(status, {"error": {**ERROR, **changed}}, **{"x-request-id": "r"})

    def asks(self) -> Handler:
        """Have the engine answer; what it says is not looked at."""
        engine = http.client.HTTPConnection(sys.argv[2].removeprefix("http://"))
        engine.request("POST", self.path, self.asked, {"content-type": "application/json"})
        engine.getresponse().read()
        engine.close()
        return self

    def passes(self, *, times: int = 1, whole: bool = False) -> None:
        """What a relay does that never looks whether its client is still there."""
        for _ in range(times):
            engine = http.client.HTTPConnection(sys.argv[2].removeprefix("http://"))
            engine.request("POST", self.path, self.asked, {"content-type": "application/json"})
            answer = engine.getresponse()
        content_type = answer.getheader("content-type", "")
        self.head(answer.status, {"content-type": content_type, "connection": "close"})
        self.close_connection = True
        while part := answer.read() if whole else answer.read1():
            with contextlib.suppress(OSError):  # and so the engine goes on
                self.wfile.write(part)

    def waits(self) -> None:
        time.sleep(60)

    def crashes(self) -> None:
        os._exit(3)

    def log_message(self, *_: Any) -> None:
        pass


FAULTS: dict[str, Callable[[Handler], object]] = {
    "request/impossible-schema-stream": lambda self: self.asks().stream(json.dumps({"error": ERROR}), DONE),
    "broken-stream/no-finish": lambda self: self.stream(UNFINISHED, DONE),
    "broken-stream/vllm": lambda self: self.stream(CHUNK),
    "good/stream": lambda self: self.asks().stream(CHUNK, DONE, DONE),
    "good/usage-chunk": lambda self: self.stream(CHUNK, CHUNK),
    "good/answer": Handler.waits,
    "good/length": lambda self: self.refuses(),
    "good/choices": lambda self: self.answer(200, {**WHOLE, "usage": {}}),
    "good/stream-text": lambda self: self.passes(times=2),
    "good/unbuffered": lambda self: self.passes(whole=True),
    "request/no-messages": lambda self: self.refuses(message="no field in /srv/engine/api.py"),
    "request/bad-json": lambda self: self.refuses(status=500),
    "request/not-an-object": lambda self: self.refuses(message="7 fields are missing"),
    "request/messages-text": lambda self: self.answer(200, WHOLE),
    "request/message-number": lambda self: self.refuses(code="out_of_memory", category="retryable"),
    "request/max-tokens-text": lambda self: self.answer(400, {"error": {"message": "no", "code": 400}}),
    "request/stream-text": lambda self: self.wfile.write(b"nonsense\r\n\r\n"),
    "request/tools-text": lambda self: setattr(self, "close_connection", True),
    "hint/request-id-made": lambda self: self.asks().answer(200, {**WHOLE, "usage": {}}),
    "hint/retryable": lambda self: self.refuses(status=503, code="queue_overloaded", category="retryable", retryable=True),
    "refusal/html-502": lambda self: self.refuses(502, message="<p>", code="bad_gateway", category="retryable", retryable=True),
    "broken-stream/unknown-finish": lambda self: self.stream(CHUNK, DONE),
    "good/completions": Handler.crashes,
}  # fmt: skip


def main() -> None:
    if "ignore" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "die" in sys.argv:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()


if __name__ == "__main__":
    main()
