"""The one table of routes: which protocol each speaks, what it asks of the engine, and whether its answer is judged.

vLLM 0.32's, llama.cpp's and LiteLLM's.  A route that is not here is passed on: its errors are put into the contract's
words, and nothing else is looked at.  The shim's own routes are in ``endpoints``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lastword_shim.protocol.wire import CHAT, COMPLETIONS, MESSAGES, OTHER, RESPONSES


@dataclass(frozen=True, slots=True)
class Route:
    """What the shim knows of a route.

    ``speaks`` is the protocol that its errors take the words of; ``operation`` is what it asks of the engine, by
    OpenTelemetry's name for it (``gen_ai.operation.name``) where there is one, and None where it makes no work; ``judged``
    tells that the shim knows when its answer is whole; ``sniffed`` that only the body tells which of several tasks it is.
    """

    speaks: str = OTHER
    operation: str | None = None
    judged: bool = False
    sniffed: bool = False

    @property
    def works(self) -> bool:
        """Whether it makes the engine work, so that limits, timers and the queue apply."""
        return self.operation is not None


OPERATIONS: Final = {CHAT: "chat", COMPLETIONS: "text_completion", RESPONSES: "chat", MESSAGES: "chat"}
"""What is asked for in each protocol."""
PROBES: Final = frozenset({"/health", "/ping"})
"""Passed on untouched until the server stops."""
LEFT_ALONE: Final = frozenset({
    "/metrics", "/load", "/version", "/server_info", "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json",
})  # fmt: skip
"""Always passed on untouched."""
_UNKNOWN: Final = Route()
_LLAMA_CPPS_OWN: Final = Route(operation="text_completion")
_GENERATE: Final = {
    "/chat/completions": CHAT, "/completions": COMPLETIONS, "/responses": RESPONSES, "/messages": MESSAGES,
}  # fmt: skip
_PASSED_ON: Final = {  # they make the engine work, and what it answers is passed on
    "/chat/completions/batch": "chat",
    "/cohere/v2/chat": "chat",
    "/inference/v1/generate": "text_completion",
    "/completion": "text_completion",
    "/infill": "text_completion",
    "/embedding": "embeddings",
    "/embeddings": "embeddings",
    "/v2/embed": "embeddings",
    "/systemone": "structured_decision",
    "/generative_scoring": "score",
    "/score": "score",
    "/pooling": "pooling",
    "/classify": "classify",
    "/rerank": "rerank",
    "/v2/rerank": "rerank",
    "/reranking": "rerank",
    "/audio/transcriptions": "transcription",
    "/audio/translations": "translation",
}
_POSTED: Final = {
    **{path: Route(speaks, OPERATIONS[speaks], judged=True) for path, speaks in _GENERATE.items()},
    **{path: Route(operation=operation) for path, operation in _PASSED_ON.items()},
    "/invocations": Route(operation="invocation", sniffed=True),  # SageMaker's one route for several
    # They make no work, but their errors are read by the clients of a protocol that has words of its own.
    "/messages/count_tokens": Route(MESSAGES),
    "/messages/render": Route(MESSAGES),
}
_PREFIX: Final = re.compile(r"/openai/deployments/[^/]+|/engines/[^/]+|(?:/openai|/anthropic)?/v1|/openai|/anthropic")
"""What stands before a route: the API's version, or as LiteLLM takes it, a provider or Azure's name for a model."""
_STORED: Final = re.compile(r"/responses/[^/]+(?:/cancel)?")


def route_of(method: str, path: str) -> Route:
    """What is known of ``method`` on ``path``, with or without a slash at its end."""
    path = path.rstrip("/")
    prefix = _PREFIX.match(path)
    bare = path[prefix.end() :] if prefix is not None and path.startswith("/", prefix.end()) else path
    if method == "POST":
        if path == "/completions":  # without a version it is llama.cpp's own protocol
            return _LLAMA_CPPS_OWN
        known = _POSTED.get(bare) or _POSTED.get(path)
        if known is not None:
            return known
    return Route(RESPONSES) if _STORED.fullmatch(bare) else _UNKNOWN
