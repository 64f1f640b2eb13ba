"""What an engine says of its own times and tokens in its answers, beside the usage.

* vLLM with ``--enable-per-request-metrics``: ``metrics`` of the last chunk or the whole answer (milliseconds);
* llama.cpp's server: ``timings``, likewise, always.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lastword_shim.engine import Ticket

_SANE: Final = 2**53  # an engine may state any number, and not every reader of a record can hold it


def read_stated(ticket: Ticket, extras: Mapping[str, Any]) -> None:
    """Take over from ``extras``, the members of an answer by name, what the ticket does not know better already."""
    metrics, timings = _object(extras, "metrics"), _object(extras, "timings")
    if ticket.queue_seconds is None:
        ticket.queue_seconds = _seconds(metrics.get("queue_time_ms"))
    if ticket.generation_seconds is None:
        told = metrics.get("generation_time_ms", timings.get("predicted_ms"))
        ticket.generation_seconds = _seconds(told)
    if ticket.completion_tokens is None:
        ticket.completion_tokens = tokens(timings.get("predicted_n"))
    prompt, cached = tokens(timings.get("prompt_n")), tokens(timings.get("cache_n"))
    if ticket.prompt_tokens is None and prompt is not None:
        ticket.prompt_tokens = prompt + (cached or 0)


def tokens(count: object) -> int | None:
    """A number of tokens; None for what is none, or for none that could be true."""
    return count if type(count) is int and 0 <= count < _SANE else None


def _object(extras: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = extras.get(name)
    return found if isinstance(found, Mapping) else {}


def _seconds(milliseconds: object) -> float | None:
    """A wire can say anything: what is no plausible time counts as not said."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return milliseconds / 1000 if 0 <= milliseconds < _SANE else None
