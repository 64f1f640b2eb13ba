"""The bodies of the embedded engine: what vLLM 0.32 writes, good answers and faults alike (seen on the wire)."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MODEL: Final = "embedded"
DEFAULT_TOKENS: Final = 40

_TEXT: Final = (
    "a request leaves and someone waits for what it will say some answers come whole some stop in the middle of a word "
    "and nobody can tell because the line stays quiet so every answer should end with a last word that says it is done "
    "or that it broke and what to do next then the waiting is over and the work goes on"
)
_WORDS: Final = _TEXT.split()


class Ending(StrEnum):
    """How the embedded engine ends an answer, chosen per request by the header ``x-demo-ending``.

    The faults are real ones: vLLM's own, and those of the proxies and networks in front of it. ``ENDINGS`` tells each.
    """

    COMPLETE = "complete"
    NO_DONE = "no-done"
    NO_FINISH = "no-finish"
    NOTHING = "nothing"
    EMPTY = "empty"
    ERROR_200 = "error-200"
    LATE_ERROR = "late-error"
    ERROR = "error"
    ABORT = "abort"
    ABORT_QUEUED = "abort-queued"
    CUT = "cut"
    STALL = "stall"
    SILENT = "silent"
    ENGINE_DEAD = "engine-dead"
    OVERLOADED = "overloaded"
    LEAK = "leak"


ENDINGS: Final[Mapping[Ending, str]] = {
    Ending.COMPLETE: "finish_reason, [DONE], the end of the body",
    Ending.NO_DONE: "finish_reason, then the body ends without [DONE]",
    Ending.NO_FINISH: "[DONE] although no choice has a finish_reason (vLLM: generator that ends silently)",
    Ending.NOTHING: "The body ends cleanly after half of the words: no finish_reason, no [DONE]",
    Ending.EMPTY: "Status 200 and not one byte of a body",
    Ending.ERROR_200: "Status 200 and an error as JSON instead of a stream",
    Ending.LATE_ERROR: "Status 200, then at once an error event, then [DONE] (vLLM: grammar that does not compile)",
    Ending.ERROR: "Half of the words, an error event, then [DONE] (vLLM: engine failure in mid-stream)",
    Ending.ABORT: "Half of the words, finish_reason abort, [DONE] (vLLM: aborted by the engine)",
    Ending.ABORT_QUEUED: "The role, then [DONE] (vLLM: aborted before the first token)",
    Ending.CUT: "Half of the words, then the connection closes in the middle of the body",
    Ending.STALL: "Half of the words, then silence for ever",
    Ending.SILENT: "The head of a stream, then nothing for ever; not even the head if the answer is not streamed",
    Ending.ENGINE_DEAD: "Status 500, as vLLM says it when its engine process is gone",
    Ending.OVERLOADED: "Status 503, as vLLM says it when its queue is full: no hint when to come back",
    Ending.LEAK: "Status 500 whose message tells paths and device memory",
}

MID_STREAM: Final = {Ending.NOTHING, Ending.ERROR, Ending.ABORT, Ending.CUT, Ending.STALL}
"""The endings that come after half of the words."""

REFUSALS: Final[Mapping[Ending, tuple[int, str, str]]] = {
    Ending.ENGINE_DEAD: (
        500,
        "InternalServerError",
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    ),
    Ending.OVERLOADED: (
        503,
        "Service Unavailable",
        "The engine is currently busy and cannot accept new requests. Please try again later.",
    ),
    Ending.LEAK: (
        500,
        "InternalServerError",
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total) in /opt/engine/worker.py line 512",
    ),
}


def error_body(status: int, kind: str, message: str, param: str | None = None) -> dict[str, Any]:
    """Give vLLM's envelope: ``code`` is the HTTP status as a number."""
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


@dataclass(slots=True)
class Answer:
    """One answer in the making: who asked for what, and the shapes that carry it."""

    id: str
    chat: bool
    choices: int
    prompt_tokens: int
    max_tokens: int
    seed: int
    ending: Ending
    limited: bool  # max_tokens is the caller's, not the engine's own idea of an answer's length
    include_usage: bool = False
    created: int = field(default_factory=lambda: int(time.time()))
    generated: int = 0

    @property
    def finish_reason(self) -> str:
        """``length`` if the caller's max_tokens ended the words, ``abort`` if the engine did."""
        if self.ending in (Ending.ABORT, Ending.ABORT_QUEUED):
            return "abort"
        return "length" if self.limited else "stop"

    def words(self, choice: int) -> Iterator[str]:
        """Give the tokens of one choice, each with its blank; the same for the same seed."""
        source = random.Random(self.seed + choice)
        start = source.randrange(len(_WORDS))
        for position in range(self.max_tokens):
            word = _WORDS[(start + position) % len(_WORDS)]
            yield word.capitalize() if position == 0 else f" {word}"

    def chunk(self, index: int, text: str | None, *, finish_reason: str | None = None, role: bool = False) -> str:
        """Give one ``data:`` line of a stream."""
        if self.chat:
            delta: dict[str, Any] = {"role": "assistant", "content": ""} if role else {"content": text or ""}
            choice: dict[str, Any] = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        else:
            choice = {"index": index, "text": text or "", "logprobs": None, "finish_reason": finish_reason}
        return event({**self._head(stream=True), "choices": [choice]})

    def usage_chunk(self) -> str:
        """Give the last chunk of a stream whose caller asked for the token counts."""
        return event({**self._head(stream=True), "choices": [], "usage": self._usage()})

    def body(self) -> dict[str, Any]:
        """Give the whole answer at once."""
        texts = ["".join(self.words(index)) for index in range(self.choices)]
        choices: list[dict[str, Any]] = []
        for index, text in enumerate(texts):
            part = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
            reason = None if self.ending is Ending.NO_FINISH else self.finish_reason
            choices.append({"index": index, **part, "logprobs": None, "finish_reason": reason})
        return {**self._head(stream=False), "choices": choices, "usage": self._usage()}

    def _head(self, *, stream: bool) -> dict[str, Any]:
        kind = "chat.completion" + (".chunk" if stream else "") if self.chat else "text_completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": MODEL}

    def _usage(self) -> dict[str, int]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + self.generated,
            "completion_tokens": self.generated,
        }


def event(data: Mapping[str, Any]) -> str:
    """Give one server-sent event as vLLM frames it."""
    return f"data: {json.dumps(data)}\n\n"
