"""The engine as an ASGI application: routes, and how each ending is brought about."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
from typing import Final, cast

from lastword_shim.engine import current
from lastword_shim.engine.embedded.requests import RefusedError, admit
from lastword_shim.engine.embedded.shapes import MID_STREAM, MODEL, REFUSALS, Answer, Ending, error_body, event
from lastword_shim.engine.embedded.wire import answer_lifespan, read_body, respond, start, wait_disconnect, write
from lastword_shim.protocol.wire import Receive, Scope, Send

_ROUTES: Final = {
    "/v1/chat/completions": "POST",
    "/v1/completions": "POST",
    "/v1/models": "GET",
    "/health": "GET",
    "/metrics": "GET",
}
_BAD: Final = "BadRequestError"


class CutError(Exception):
    """Raised through the server on purpose: it closes the connection in the middle of the body."""


class EmbeddedEngine:
    """The engine as an ASGI application.

    ``pace`` is the time a token takes in seconds, ``max_model_len`` the limit of prompt and answer together in tokens
    (a token is a word here).
    """

    def __init__(self, *, pace: float = 0.03, max_model_len: int = 2048) -> None:
        self.pace = pace
        self.max_model_len = max_model_len
        self.running = 0
        self.requests = 0
        self.prompt_tokens = 0
        self.generation_tokens = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await answer_lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        method = _ROUTES.get(scope["path"])
        if method is None:
            await respond(send, 404, {"detail": "Not Found"})
        elif method != scope["method"]:
            await respond(send, 405, {"detail": "Method Not Allowed"}, [(b"allow", method.encode())])
        elif scope["path"] == "/v1/models":
            model = {"id": MODEL, "object": "model", "created": 1, "owned_by": "embedded"}
            await respond(send, 200, {"object": "list", "data": [{**model, "max_model_len": self.max_model_len}]})
        elif method == "GET":
            text = self.metrics() if scope["path"] == "/metrics" else b""
            await respond(send, 200, text, [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")])
        else:
            await self._generate(scope, receive, send)

    async def _generate(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests += 1
        try:
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            raw = await read_body(receive)
            body, answer = admit(scope["path"], headers, raw, number=self.requests, max_model_len=self.max_model_len)
        except RefusedError as error:
            await respond(send, error.status, error.body)
            return
        self.running += 1
        self.prompt_tokens += answer.prompt_tokens
        produce = self._stream(answer, send) if body.get("stream") else self._whole(answer, send)
        work = asyncio.ensure_future(produce)
        left = asyncio.ensure_future(wait_disconnect(receive))
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.running -= 1
            for task in (work, left):
                task.cancel()
            await asyncio.gather(work, left, return_exceptions=True)
        if not work.cancelled() and (failure := work.exception()) is not None:
            raise failure

    async def _stream(self, answer: Answer, send: Send) -> None:
        ending = answer.ending
        if ending is Ending.ERROR_200:
            await respond(send, 200, error_body(500, "InternalServerError", "the engine failed"))
            return
        await start(send, 200, [(b"content-type", b"text/event-stream; charset=utf-8")])
        if ending is Ending.SILENT:
            await asyncio.Event().wait()
        if ending is Ending.LATE_ERROR:
            await write(send, event(error_body(400, _BAD, "Failed to compile the grammar: unbalanced parenthesis")))
        elif ending is not Ending.EMPTY:
            await self._events(answer, send)
        if ending not in (Ending.NO_DONE, Ending.NOTHING, Ending.EMPTY):
            await write(send, "data: [DONE]\n\n")
        await send({"type": "http.response.body", "body": b""})

    async def _events(self, answer: Answer, send: Send) -> None:
        for index in range(answer.choices):
            if answer.chat:
                await write(send, answer.chunk(index, None, role=True))
        if answer.ending is Ending.ABORT_QUEUED:
            return
        stop_at = answer.max_tokens // 2 if answer.ending in MID_STREAM else answer.max_tokens
        for position, words in enumerate(zip(*map(answer.words, range(answer.choices)), strict=True)):
            if position == stop_at:
                break
            await asyncio.sleep(self.pace)
            for index, word in enumerate(words):
                self._count(answer)
                await write(send, answer.chunk(index, word))
        await self._finish(answer, send)

    async def _finish(self, answer: Answer, send: Send) -> None:
        if answer.ending is Ending.STALL:
            await asyncio.Event().wait()
        elif answer.ending is Ending.CUT:
            raise CutError("the connection is cut here on purpose (x-demo-ending: cut)")
        elif answer.ending is Ending.ERROR:
            await write(send, event(error_body(*REFUSALS[Ending.ENGINE_DEAD])))
        elif answer.ending not in (Ending.NO_FINISH, Ending.NOTHING):
            for index in range(answer.choices):
                await write(send, answer.chunk(index, "", finish_reason=answer.finish_reason))
            if answer.include_usage:
                await write(send, answer.usage_chunk())

    async def _whole(self, answer: Answer, send: Send) -> None:
        ending = answer.ending
        if ending in (Ending.SILENT, Ending.STALL):
            await asyncio.Event().wait()
        if ending is Ending.LATE_ERROR:
            message = "Failed to compile the grammar: unbalanced parenthesis"
            await respond(send, 400, error_body(400, _BAD, message))
        elif ending is Ending.ERROR:
            await respond(send, 500, error_body(*REFUSALS[Ending.ENGINE_DEAD]))
        elif ending is Ending.ERROR_200:
            await respond(send, 200, error_body(500, "InternalServerError", "the engine failed"))
        elif ending is Ending.EMPTY:
            await respond(send, 200, b"", [(b"content-type", b"application/json")])
        else:
            for _ in range(answer.max_tokens):
                await asyncio.sleep(self.pace)
                self._count(answer, tokens=answer.choices)
            content = json.dumps(answer.body()).encode()
            if ending not in (Ending.CUT, Ending.NOTHING):
                await respond(send, 200, content, [(b"content-type", b"application/json")])
                return
            await start(send, 200, [(b"content-type", b"application/json")])
            await write(send, content[: len(content) // 2].decode())
            if ending is Ending.CUT:
                raise CutError("the connection is cut here on purpose (x-demo-ending: cut)")
            await send({"type": "http.response.body", "body": b""})

    def _count(self, answer: Answer, *, tokens: int = 1) -> None:
        answer.generated += tokens
        self.generation_tokens += tokens
        if (ticket := current()) is not None:
            ticket.produced(answer.generated)

    def metrics(self) -> bytes:
        """Give the engine's counters under vLLM's names, and whatever else this process registered with Prometheus."""
        values = {
            ("vllm:num_requests_running", "gauge"): self.running,
            ("vllm:prompt_tokens_total", "counter"): self.prompt_tokens,
            ("vllm:generation_tokens_total", "counter"): self.generation_tokens,
        }
        lines = [f'# TYPE {name} {kind}\n{name}{{model_name="{MODEL}"}} {n}' for (name, kind), n in values.items()]
        text = ("\n".join(lines) + "\n").encode()
        with contextlib.suppress(ModuleNotFoundError):
            prometheus = importlib.import_module("prometheus_client")
            text += cast("bytes", prometheus.generate_latest())
        return text
