"""Which reading an answer gets, by what was asked for and by how it begins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from lastword_shim.protocol.ask import Ask
from lastword_shim.protocol.encodings import is_plain
from lastword_shim.protocol.events import EventReading
from lastword_shim.protocol.messages import MessagesReading, judge_message
from lastword_shim.protocol.readings import Judge, PassReading, Reading, StreamReading, WholeReading, judge_choices
from lastword_shim.protocol.responses import ResponsesReading, judge_response
from lastword_shim.protocol.wire import MESSAGES, RESPONSES

_EVENTS: Final = "text/event-stream"


def is_event_stream(headers: Mapping[str, str], ask: Ask) -> bool:
    """Whether the answer is a stream of events; one without a type is what was asked for (STR-12)."""
    content_type = headers.get("content-type", _EVENTS if ask.stream else "")
    return content_type.partition(";")[0].strip().lower() == _EVENTS


def reading_of(
    ask: Ask,
    status: int,
    headers: Mapping[str, str],
    *,
    engine_says: Collection[str],
    on_content: Callable[[], None],
) -> Reading:
    """How to read an answer that begins with ``status`` and ``headers``; ``engine_says`` fills while it is given."""
    if status >= 400:
        return WholeReading(status=status, headers=headers, judge=None)
    events = is_event_stream(headers, ask)
    encoded = not is_plain(headers.get("content-encoding", ""))
    if (encoded and not ask.judged) or (events and status >= 300):
        return PassReading(on_content=on_content if events else None)
    if events:
        return _stream(ask, engine_says, on_content)
    if ask.judged and ask.whole_is_judged and status < 300:
        return WholeReading(status=status, headers=headers, judge=_judge_of(ask, engine_says))
    return PassReading()


def _stream(ask: Ask, engine_says: Collection[str], on_content: Callable[[], None]) -> Reading:
    if not ask.judged:
        return EventReading(ask.kind, on_content=on_content)
    if ask.kind == RESPONSES:
        return ResponsesReading(engine_says=engine_says, on_content=on_content)
    if ask.kind == MESSAGES:
        return MessagesReading(engine_says=engine_says, on_content=on_content)
    return StreamReading(choices=ask.choices, on_content=on_content)


def _judge_of(ask: Ask, engine_says: Collection[str]) -> Judge:
    if ask.kind == RESPONSES:
        return judge_response(engine_says)
    return judge_message(engine_says) if ask.kind == MESSAGES else judge_choices(ask.choices)
