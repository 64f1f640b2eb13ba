"""What is known of a route: the protocol that it speaks, whether it makes the engine work, whether its answer is judged."""

from __future__ import annotations

import pytest

from lastword_shim.protocol.ask import Ask
from lastword_shim.protocol.routes import OPERATIONS, Route, route_of
from lastword_shim.protocol.wire import CHAT, COMPLETIONS, MESSAGES, OTHER, RESPONSES

JUDGED = {
    "/v1/chat/completions": CHAT,
    "/v1/chat/completions/": CHAT,
    "/chat/completions": CHAT,
    "/openai/v1/chat/completions": CHAT,
    "/openai/deployments/gpt-4o/chat/completions": CHAT,
    "/engines/m/chat/completions": CHAT,
    "/v1/completions": COMPLETIONS,
    "/openai/deployments/m/completions": COMPLETIONS,
    "/v1/responses": RESPONSES,
    "/responses": RESPONSES,
    "/openai/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
    "/anthropic/v1/messages": MESSAGES,
}
WORK = (
    "/v1/embeddings", "/embeddings", "/openai/deployments/m/embeddings", "/v2/embed", "/pooling", "/classify",
    "/score", "/v1/score", "/rerank", "/v1/rerank", "/v2/rerank", "/v1/reranking", "/v1/audio/transcriptions",
    "/v1/audio/translations", "/inference/v1/generate", "/v1/chat/completions/batch", "/cohere/v2/chat",
    "/generative_scoring", "/v1/systemone", "/completions", "/completion", "/infill",
)  # fmt: skip
NOTHING = (
    ("GET", "/v1/chat/completions"), ("GET", "/v1/models"), ("POST", "/tokenize"), ("POST", "/v1/load_lora_adapter"),
    ("POST", "/v1"), ("POST", "/"), ("POST", ""), ("POST", "/v1x/chat/completions"), ("POST", "/v1/chat/completions/render"),
    ("POST", "/openai/deployments"), ("POST", "/x/v1/chat/completions"),
)  # fmt: skip


@pytest.mark.parametrize(("path", "kind"), JUDGED.items())
def test_a_route_that_generates_is_judged_under_each_of_its_names(path: str, kind: str) -> None:
    """vLLM's, llama.cpp's and LiteLLM's spellings."""
    assert route_of("POST", path) == Route(kind, OPERATIONS[kind], judged=True)


@pytest.mark.parametrize("path", WORK)
def test_other_work_for_the_engine_is_not_judged(path: str) -> None:
    """It takes a place, and its answer is passed on."""
    route = route_of("POST", path)
    assert route.works
    assert route == Route(operation=route.operation)


@pytest.mark.parametrize(("method", "path"), NOTHING)
def test_what_is_not_known_is_left_to_the_application(method: str, path: str) -> None:
    """No place, no judgement."""
    assert route_of(method, path) == Route()


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/v1/messages/count_tokens", MESSAGES),
        ("GET", "/v1/responses/resp_1", RESPONSES),
        ("POST", "/v1/responses/resp_1/cancel", RESPONSES),
    ],
)
def test_errors_speak_the_protocol_of_the_route_though_nothing_is_generated(method: str, path: str, kind: str) -> None:
    """Their clients are those of the protocol."""
    assert route_of(method, path) == Route(kind)


@pytest.mark.parametrize(
    ("body", "kind", "judged"),
    [
        (b'{"messages": []}', CHAT, True),
        (b'{"prompt": "x"}', COMPLETIONS, True),
        (b'{"input": "x"}', OTHER, False),
        (b"[]", OTHER, False),
        (b"\xff", OTHER, False),
    ],
)
def test_only_the_body_tells_what_the_one_route_for_several_is(body: bytes, kind: str, judged: bool) -> None:
    """Until then it may be a generation; it always makes the engine work."""
    route = route_of("POST", "/invocations")
    assert Ask.before_body(route).judged
    ask = Ask.read(route, body, "text/plain")
    assert isinstance(ask, Ask)
    assert (ask.kind, ask.judged, ask.works) == (kind, judged, True)
