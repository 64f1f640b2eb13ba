"""What can be found out of a server before the first case: its model, name, context, and how to see its engine at work."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from lastword.conformance._results import ConformanceError
from lastword.conformance.server._engine import NAME as ENGINE
from lastword.conformance.server._exchange import Answer, Asking
from lastword.conformance.server._request import Target, request_of

MOST_CONTEXT: Final = 10_000_000
"""Tokens that a server may be taken to have: a case writes a prompt of twice as many words."""
_SECONDS: Final = 10.0
_MANY: Final = 1e9  # requests; and infinity is no number of them
_FOR_GOOD: Final = (301, 302, 303, 307, 308, 401, 403)  # waiting does not help
_LONGEST_NAME: Final = 100  # characters
# Requests at work and waiting, as engines' own metrics name them. The first row of which one is there is taken.
_GAUGES: Final = (
    ("vllm:num_requests_running", "vllm:num_requests_waiting"),
    ("llamacpp:requests_processing", "llamacpp:requests_deferred"),
    ("sglang:num_running_reqs", "sglang:num_queue_reqs"),
    ("tgi_batch_current_size", "tgi_queue_size"),
)


@dataclass(frozen=True, slots=True)
class Gauge:
    """Reads an engine's own count of what it is doing."""

    target: Target
    names: tuple[str, ...]

    async def at_work(self) -> int:
        """Requests at work and waiting; -1 where it does not tell just now."""
        counts = _counts((await get(self.target, "/metrics")).body.decode("utf-8", "replace"), self.names)
        return round(min(sum(counts.values()), _MANY)) if counts else -1


@dataclass(frozen=True, slots=True)
class Found:
    """What a server tells of itself."""

    target: Target
    name: str
    version: str
    gauge: Gauge | None


async def get(target: Target, path: str, *, limit: float = _SECONDS) -> Answer:
    """Fetch a path, whatever comes of it."""
    return await _asking(target, path, limit).run()


def _asking(target: Target, path: str, limit: float = _SECONDS) -> Asking:
    return Asking(target, request_of(target, {"stream": False, "method": "GET", "path": path}, "probe"), limit=limit)


def look(target: Target, *, model: str | None) -> Found:
    """Ask the server; ``ConformanceError`` if nothing answers, or if it has no model and none was named."""
    return asyncio.run(_look(target, model))


async def _look(target: Target, model: str | None) -> Found:
    listed, answer = await _models(target, patient=model is None)
    first = listed[0] if listed else {}
    model = model or first.get("id")
    if not model or not isinstance(model, str):
        how = f"HTTP {answer.status} {answer.content_type}".rstrip()
        remedy = "give its key with --api-key" if answer.status in (401, 403) else "give one with --model"
        raise ConformanceError(f"{target.url}/v1/models names no model ({how}): {remedy}")
    own = next((each for each in listed if each.get("id") == model), first)
    target = replace(target, model=model, context=target.context or _context(own))
    metrics = (await get(target, "/metrics")).body.decode("utf-8", "replace")
    names = next((row for row in _GAUGES if _counts(metrics, row)), None)
    version = _document(await get(target, "/version")).get("version")
    names_given = (first.get("owned_by"), *answer.values("server"))
    # A gateway may pass on what the engine that we play says: that is not its own name.
    own_names = (each for each in names_given if each and isinstance(each, str) and each != ENGINE)
    name = next((each[:_LONGEST_NAME] for each in own_names), "server")
    return Found(target, name, str(version or "")[:_LONGEST_NAME], Gauge(target, names) if names else None)


async def _models(target: Target, *, patient: bool) -> tuple[list[Mapping[str, Any]], Answer]:
    """The models that the server lists; some answer a moment before they know any."""
    until = time.monotonic() + (_SECONDS if patient else 0)
    while True:
        asking = _asking(target, "/v1/models")
        answer = await asking.run()
        if answer.status is None:
            how = f"nothing answers at {target.url} ({asking.unreached or answer.end})"
            raise ConformanceError(f"{how}: start the server, or give its command after --")
        listed = _document(answer).get("data")
        found = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
        if found or answer.status in _FOR_GOOD or time.monotonic() > until:
            return found, answer
        await asyncio.sleep(0.2)


def _context(model: Mapping[str, Any]) -> int | None:
    meta = model.get("meta")
    found = model.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, Mapping) else None)
    return found if type(found) is int and 0 < found <= MOST_CONTEXT else None


def _counts(text: str, names: tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in re.findall(r"^([\w:]+)(?:\{[^}]*\})? ([\d.eE+-]+)", text, re.MULTILINE):
        with contextlib.suppress(ValueError):  # 1e, and other things that only look like numbers
            if name in names and math.isfinite(float(value)):
                found[name] = found.get(name, 0.0) + float(value)
    return found


def _document(answer: Answer) -> Mapping[str, Any]:
    try:
        parsed = json.loads(bytes(answer.body))
    except (ValueError, RecursionError):
        return {}
    return parsed if answer.status == 200 and isinstance(parsed, Mapping) else {}
