"""Answers of the Responses and Messages endpoints, put into the words of chat, so that one judge holds all of them.

What an end means stays what it is: a terminal event that says success becomes a finish_reason and ``[DONE]``, one that says
failure an error event, and what has no business on the endpoint an event that nobody can read (RSP and MSG rules).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lastword._codes import INCOMPLETE_REASONS, STOP_REASONS, Finish
from lastword._sse import ServerSentEvent

SUCCESS: Final = {"responses": "response.completed", "messages": "message_stop"}
"""What says success on an endpoint that has no `[DONE]`."""
_DONE: Final = "[DONE]"
_FOREIGN: Final = "[DONE], which this endpoint does not have"


@dataclass(frozen=True, slots=True)
class Told:
    """One event as chat has it, and ``frame``, the event that an error came in: its name and parsed data."""

    event: ServerSentEvent
    frame: Mapping[str, Any] | None = None


def as_chat(endpoint: str, events: Iterable[ServerSentEvent]) -> Iterator[Told]:
    """The events of an endpoint's stream in chat's words; those of chat and completions as they are."""
    if endpoint not in ("responses", "messages"):
        yield from map(Told, events)
        return
    reason: str | None = None
    for event in events:
        data = _parsed(event.data)
        if not isinstance(data, dict):
            said = _FOREIGN if event.data.strip() == _DONE else event.data
            yield Told(event._replace(data=said))
            continue
        kind = str(data.get("type") or event.event)
        if kind in ("error", "response.failed") or data.get("error"):
            error = data.get("error") or _object(data, "response").get("error") or data
            yield Told(_event({"error": error}), {"event": event.event, "data": data})
        elif kind == "message_delta":
            reason = _object(data, "delta").get("stop_reason") or reason
            yield from _usage(data.get("usage"))
        elif kind in ("message_stop", "response.completed", "response.incomplete"):
            yield from _end(kind, _object(data, "response"), reason)
        elif (text := _text(data, kind)) is not None:
            yield Told(_event(_chunk({"content": text})))


def body_as_chat(endpoint: str, value: Any) -> Any:
    """A whole answer in chat's words; one of chat and completions as it is."""
    if endpoint not in ("responses", "messages") or not isinstance(value, dict):
        return value
    if endpoint == "messages":
        parts, reason = value.get("content"), STOP_REASONS.get(str(value.get("stop_reason")), value.get("stop_reason"))
    else:
        items = [item for item in _list(value.get("output")) if isinstance(item, dict)]
        parts = [part for item in items for part in _list(item.get("content"))]
        reason = {"completed": Finish.STOP, "incomplete": _why(value)}.get(str(value.get("status")))
    text = "".join(str(part.get("text", "")) for part in _list(parts) if isinstance(part, dict))
    usage = value.get("usage")
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return {"choices": [choice], **({"usage": usage} if isinstance(usage, dict) else {})}


def _end(kind: str, response: Mapping[str, Any], stop_reason: str | None) -> Iterator[Told]:
    if kind == "message_stop":
        finish = STOP_REASONS.get(stop_reason or "", stop_reason)
    else:
        finish = _why(response) if kind == "response.incomplete" else Finish.STOP
        if response.get("status", kind.removeprefix("response.")) != kind.removeprefix("response."):
            finish = None  # it contradicts itself (RSP-2)
        yield from _usage(response.get("usage"))
    if finish is not None:
        yield Told(_event(_chunk({}, finish)))
    yield Told(ServerSentEvent(_DONE, ""))


def _why(response: Mapping[str, Any]) -> str | None:
    reason = _object(response, "incomplete_details").get("reason")
    return INCOMPLETE_REASONS.get(str(reason), reason)


def _text(data: Mapping[str, Any], kind: str) -> str | None:
    text = data.get("delta") if kind == "response.output_text.delta" else None
    if kind == "content_block_delta":
        text = _object(data, "delta").get("text")
    return text if isinstance(text, str) else None


def _usage(usage: Any) -> Iterator[Told]:
    if isinstance(usage, dict):
        yield Told(_event({"choices": [], "usage": usage}))


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _event(data: Mapping[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(data), "")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
