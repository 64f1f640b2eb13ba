"""Answers of servers, and what the classifier makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lastword._classify import ErrorInfo, classify_response

NOW = 1_800_000_000.0


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of ``dialects/<name>.json``, written down from servers' sources and from probes."""
    found: list[dict[str, Any]] = json.loads((Path(__file__).parent / "dialects" / f"{name}.json").read_text("utf-8"))
    return found


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
