"""The one table of routes: which protocol each speaks, whether it makes the engine work, and whether its answer is judged.

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

    ``speaks`` is the protocol that its errors take the words of; ``works`` tells that it makes the engine work, so that
    limits, timers and the queue apply; ``judged`` that the shim knows when its answer is whole; ``sniffed`` that only
    the body tells which of several tasks it is.
    """

    speaks: str = OTHER
    works: bool = False
    judged: bool = False
    sniffed: bool = False


PROBES: Final = frozenset({"/health", "/ping"})
"""Passed on untouched until the server stops."""
LEFT_ALONE: Final = frozenset({
    "/metrics", "/load", "/version", "/server_info", "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json",
})  # fmt: skip
"""Always passed on untouched."""
_UNKNOWN: Final = Route()
_WORK: Final = Route(works=True)
_POSTED: Final = {
    # The four that generate, and whose answers are judged.
    "/chat/completions": Route(CHAT, works=True, judged=True),
    "/completions": Route(COMPLETIONS, works=True, judged=True),
    "/responses": Route(RESPONSES, works=True, judged=True),
    "/messages": Route(MESSAGES, works=True, judged=True),
    "/invocations": Route(works=True, sniffed=True),  # SageMaker's one route for several
    # They make the engine work, and their answers are passed on.
    "/chat/completions/batch": _WORK,
    "/inference/v1/generate": _WORK,
    "/cohere/v2/chat": _WORK,
    "/systemone": _WORK,
    "/generative_scoring": _WORK,
    "/completion": _WORK,
    "/infill": _WORK,
    "/embedding": _WORK,
    "/embeddings": _WORK,
    "/v2/embed": _WORK,
    "/pooling": _WORK,
    "/classify": _WORK,
    "/score": _WORK,
    "/rerank": _WORK,
    "/v2/rerank": _WORK,
    "/reranking": _WORK,
    "/audio/transcriptions": _WORK,
    "/audio/translations": _WORK,
    # They do not, but their errors are read by the clients of a protocol that has words of its own.
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
            return _WORK
        known = _POSTED.get(bare) or _POSTED.get(path)
        if known is not None:
            return known
    return Route(RESPONSES) if _STORED.fullmatch(bare) else _UNKNOWN
