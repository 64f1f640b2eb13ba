"""The envelopes that servers put errors in, read into one flat mapping.

``error_fields`` answers "is this an error, and what does it say" for a JSON value that stands where an answer or a
chunk was expected; ``any_fields`` reads a value that is known to be an error from its HTTP status or event name.
The mapping has some of: message, type, param, code, status (int), request_id, details, and the contract's own members.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

Fields = dict[str, Any]

_COPIED: Final = (
    "type",
    "param",
    "code",
    "category",
    "retryable",
    "retry_after_ms",
    "request_id",
    "origin",
    "contract",
)
_NUMBERS: Final = {
    "n_prompt_tokens": "prompt_tokens",
    "n_ctx": "max_model_len",
}  # llama.cpp's exceed_context_size_error
_MAX_NESTING: Final = 8  # envelopes in envelopes; what lies deeper is no message
_MAX_TITLE: Final = 8192  # characters in which a page must have its title; looking takes their square
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


def error_fields(value: object) -> Fields | None:
    """Read ``value`` if it has an error's shape (CLS-3), else None.

    Chunks and answers may carry an ``error`` or ``detail`` that is null or empty (CLS-8); an object with ``choices`` is an
    error only if ``error`` is not empty, or ``object`` or ``type`` says so (CLS-7).
    """
    if isinstance(value, list) and len(value) == 1:  # Google's OpenAI-compatible endpoint wraps the envelope in a list
        value = value[0]
    if not isinstance(value, Mapping):
        return None
    if value.get("error"):
        return _of_error(value["error"], value)
    if value.get("object") == "error" or value.get("type") == "error":
        return _of_mapping(value)
    if "choices" in value:
        return None
    if value.get("type") == "response.failed" and isinstance(value.get("response"), Mapping):
        return _of_error(value["response"].get("error") or {}, value)
    if value.get("detail") is not None:
        return _of_detail(value["detail"])
    answers = "id" in value or "data" in value
    if isinstance(value.get("message"), str) and ("code" in value or "type" in value) and not answers:
        return _of_mapping(value)
    return None


def any_fields(value: object) -> Fields | None:
    """Read a value known to be an error; None where it says nothing at all."""
    fields = error_fields(value)
    if fields is not None:
        return fields
    if isinstance(value, Mapping) and value:
        fields = _of_mapping(value)
        if not fields["message"]:  # no member that we know to be text, so all of it (CLS-9)
            fields["message"] = shown(value)[:500]
        return fields
    if isinstance(value, str) and value.strip():
        return {"message": value.strip()}
    return None


def shown(value: object) -> str:
    """``value`` as text for people: itself if it is a text, else its JSON.  Never raises for parsed JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that cannot be shown"


def describe_text(status: int, text: str) -> str:
    """A sentence for a body that is no JSON: the title of an HTML page, the first line of a text, or that it is empty."""
    phrase = next((f" {known.phrase}" for known in HTTPStatus if known.value == status), "")
    stripped = text.strip()
    if not stripped:
        return f"HTTP {status}{phrase} with an empty body"
    title = _TITLE.search(stripped[:_MAX_TITLE])
    if title is not None:
        return f"HTTP {status}{phrase} with an HTML page: {' '.join(title[1].split())}"
    if stripped.startswith("<"):
        return f"HTTP {status}{phrase} with a body of markup"
    return stripped.splitlines()[0][:500]


def _of_error(error: object, outer: Mapping[str, Any]) -> Fields:
    if isinstance(error, Mapping):
        fields = _of_mapping(error)
    else:
        fields = {"message": shown(error)}
        if "error_type" in outer:  # TGI
            fields["type"] = outer["error_type"]
        said = outer.get("message")
        if said and said != error:  # Spring and Nest: error is the status in words, and message what it is about
            fields["message"] = f"{error}: {shown(said)}" if error and isinstance(error, str) else shown(said)
    if isinstance(outer.get("request_id"), str):  # Anthropic
        fields.setdefault("request_id", outer["request_id"])
    return fields


def _of_mapping(value: Mapping[str, Any]) -> Fields:
    fields: Fields = {}
    for _ in range(_MAX_NESTING):
        fields.update({name: value[name] for name in _COPIED if value.get(name) is not None})
        message = value.get("message") or value.get("error")
        if not isinstance(message, Mapping):
            break
        value = message  # an envelope in an envelope, as gateways make them
    fields["message"] = "" if message is None else shown(message)
    details = value.get("details")
    fields["details"] = dict(details) if isinstance(details, Mapping) else {}
    for theirs, ours in _NUMBERS.items():
        if value.get(theirs).__class__ is int:  # a bool is an int to isinstance
            fields["details"][ours] = value[theirs]
    status = value.get("http_status_code")  # TGI's OpenAI route
    if isinstance(status, int) and 400 <= status < 600:
        fields["status"] = status
    return fields


def _of_detail(detail: object) -> Fields:
    if isinstance(detail, Mapping):  # LiteLLM: {"detail": {"error": …}}
        return _of_error(detail["error"], detail) if detail.get("error") else _of_mapping(detail)
    if isinstance(detail, list):  # FastAPI's validation errors: [{"loc": […], "msg": …, "type": …}]
        problems = [problem for problem in detail if isinstance(problem, Mapping)]
        places = [_place(problem.get("loc")) for problem in problems]
        said = [shown(problem.get("msg", "")) for problem in problems]
        texts = [f"{place}: {text}" if place else text for place, text in zip(places, said, strict=True)]
        return {"message": "; ".join(texts) or shown(detail), "param": (places[0] or None) if places else None}
    return {"message": shown(detail)}


def _place(loc: object) -> str:
    return ".".join(map(shown, loc)) if isinstance(loc, list) else shown(loc or "")
