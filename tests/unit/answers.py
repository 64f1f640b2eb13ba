"""Answers of servers, and what the classifier makes of them."""

from __future__ import annotations

import json
from typing import Any

from lastword._classify import ErrorInfo, classify_response
from lastword._contract import vectors
from lastword._scripted._script import Send, parse_step

NOW = 1_800_000_000.0


def refusals() -> list[dict[str, Any]]:
    """The client vectors that are one error answer: what deployed servers were seen to send, and what it is."""
    return [vector for vector in vectors("client") if vector["id"].startswith("body/") and len(vector["server"]) == 1]


def body_of(vector: dict[str, Any]) -> bytes:
    """The bytes of a vector's answer, as they are sent."""
    steps = (step for raw in vector["server"][0]["steps"] for step in parse_step(raw))
    return b"".join(step.payload for step in steps if isinstance(step, Send))


def classify(status: int, body: object, **headers: str) -> ErrorInfo:
    """What an answer is, with ``body`` as JSON unless it is text; ``x_y`` stands for the header x-y."""
    content = body if isinstance(body, str) else json.dumps(body)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    info = classify_response(status, names, content.encode(), now=NOW)
    assert info is not None
    return info


def openai(type_: str, code: str | None) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    return {"error": {"message": "m", "type": type_, "param": None, "code": code}}
