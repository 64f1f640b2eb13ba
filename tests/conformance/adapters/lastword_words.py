"""What lastword's two adapters share: the client's options, the call, and an outcome in the shape of ``outcome.json``."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from typing import Any

from lastword import LastwordError, Outcome, RetryPolicy, Timeouts

CAPABILITIES = [
    *("cancel", "choices", "completions", "connect", "deadline", "first_token"),
    *("headers", "idle", "models", "profiles", "retry", "tools"),
]
NOTE = "Nothing is mapped: outcomes and codes are the library's own."
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the suite speaks plain HTTP, and loading them takes 50 ms
SHARED = ("outcome", "code", "category", "retryable", "message", "request_id")  # of outcomes and errors alike


def options(case: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the client."""
    call = case["call"]
    retry, timeouts = RetryPolicy(max_attempts=call["retries"] + 1), Timeouts(**call["timeouts"])
    fixed = {"base_url": case["base_url"], "api_key": case["api_key"], "ssl_context": NO_CERTIFICATES}
    return {**fixed, "profile": call["profile"], "retry": retry, "timeouts": timeouts}


def create(client: Any, call: Mapping[str, Any]) -> Any:
    """Make the call; what comes back is to be awaited if the client is async."""
    if call["endpoint"] == "models":
        return client.models.list()
    resource = client.completions if call["endpoint"] == "completions" else client.chat.completions
    return resource.create(**call["request"])


class Reading:
    """A stream as its caller sees it: what its chunks said, and whether the stream's account of itself agrees."""

    def __init__(self, stream: Any, call: Mapping[str, Any]) -> None:
        self.stream = stream
        self.texts: dict[int, str] = {}
        self._wanted = (call["cancel"] or {}).get("after_events", -1)

    def last(self, chunk: Any) -> bool:
        """Take a chunk; true if the caller leaves after it."""
        self._wanted -= 1
        for choice in chunk.choices:
            text = choice.delta.content if hasattr(choice, "delta") else choice.text
            self.texts[choice.index] = self.texts.get(choice.index, "") + (text or "")
        return bool(self._wanted == 0)

    def report(self, raised: LastwordError | None = None) -> dict[str, Any]:
        """How the stream ended, held against what it handed over and what it raised."""
        assert self.stream.text == self.texts.get(0, ""), "the stream's text is not what its chunks said"
        if raised is not None:
            assert self.stream.outcome.error is raised, "the outcome has another error than the one that was raised"
            partial = {**dict.fromkeys(self.texts, ""), **raised.partial.texts}
            assert partial == self.texts, "the error's partial is not what the chunks said"
        calls = [(each.id, each.name, each.raw_arguments) for each in self.stream.tool_calls]
        return report(self.stream.outcome, texts=self.texts, calls=calls)


def answered(answer: Any, outcome: Outcome) -> dict[str, Any]:
    """The report on a call without a stream."""
    if answer is None or not hasattr(answer, "choices"):  # nothing came, or a list of models
        return report(outcome)
    messages = {choice.index: getattr(choice, "message", choice) for choice in answer.choices}
    texts = {index: getattr(each, "content", getattr(each, "text", None)) or "" for index, each in messages.items()}
    calls = [call for each in messages.values() for call in getattr(each, "tool_calls", None) or ()]
    return report(
        outcome, texts=texts, calls=[(each.id, each.function.name, each.function.arguments) for each in calls]
    )


def report(
    word: Outcome | LastwordError, *, texts: Mapping[int, str] | None = None, calls: Iterable[tuple[Any, ...]] = ()
) -> dict[str, Any]:
    """The last word on a call, from its outcome or from what it raised: every member that ``outcome.json`` has."""
    error: Any = word.error if isinstance(word, Outcome) else word
    received: Any = word if isinstance(word, Outcome) else word.partial
    texts = dict(error.partial.texts) if texts is None and error else texts or {}
    hint = getattr(error, "retry_after", None)
    return {
        **{name: getattr(word, name) for name in SHARED},
        **{name: getattr(error, name, None) for name in ("status", "param", "origin")},
        "retry_after_ms": None if hint is None else round(hint * 1000),
        "details": dict(getattr(error, "details", {})),
        "text": texts.get(0, ""),
        "texts": {str(index): text for index, text in texts.items()},
        "finish_reasons": {str(index): reason for index, reason in received.finish_reasons.items()},
        "tool_calls": [{"id": each[0], "name": each[1], "arguments": each[2]} for each in calls],
        "usage": None if received.usage is None else dict(received.usage),
        "warnings": list(getattr(word, "warnings", ())),
        "attempts": [{"number": each.number, "code": each.code, "status": each.status} for each in word.attempts],
    }
