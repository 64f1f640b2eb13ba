"""What the shim says when it starts: names that it does not know, what is set, and what of it has no effect."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from lastword_shim._settings import PREFIX, Settings, variable
from lastword_shim.admission.bounds import Bounds
from lastword_shim.engine import Engine

_OTHERS: Final = frozenset({"BASE_URL", "API_KEY"})  # the SDK's
_UNKNOWN: Final = "none that it knows, so it sees only what passes"
_NEED_TOKENS: Final = ("queue_timeout", "first_token_timeout", "idle_timeout")
_CONTAINED: Final = (
    ("queue_timeout", "first_token_timeout"),
    ("queue_timeout", "total_timeout"),
    ("first_token_timeout", "total_timeout"),
    ("idle_timeout", "total_timeout"),
)
"""A timer, and another within which its time lies."""
_COUNT_TOKENS: Final = ("max_inflight_tokens", "max_queued_tokens")


def unknown_names(variables: Iterable[str]) -> str | None:
    """One line that names the ``LASTWORD_*`` variables that nobody reads, each with the nearest that is read.

    Their values are not shown: a name that was meant for something else may hold a secret.
    """
    known = [name.upper() for name in Settings.model_fields]
    found = []
    for given in sorted(variables):
        name = given.upper().removeprefix(PREFIX)  # as pydantic reads them, whatever their case
        if not given.upper().startswith(PREFIX) or name in (*known, *_OTHERS):
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        found.append(f"{given} (nearest: {PREFIX}{near[0]})" if near else given)
    return f"unknown settings, which have no effect: {', '.join(found)}" if found else None


def start_line(settings: Settings, engine: Engine | None) -> tuple[int, str]:
    """The line that says what there is, and its logging level: a warning if a setting does not do what it says."""
    parts = [f"engine: {engine.title if engine is not None else _UNKNOWN}", f"settings: {settings.told()}"]
    warnings = list(_warnings(settings, engine))
    remarks = list(engine.remarks(settings)) if engine is not None else []
    parts += [remark.text for remark in sorted(remarks, key=lambda remark: remark.warns)]
    level = logging.WARNING if warnings or any(remark.warns for remark in remarks) else logging.INFO
    return level, "; ".join([*parts, *warnings])


def _warnings(settings: Settings, engine: Engine | None) -> Iterator[str]:
    for later, sooner in _CONTAINED:
        limit, within = getattr(settings, later), getattr(settings, sooner)
        if limit is not None and within is not None and limit >= within:
            yield f"{variable(later)} ends nothing: {variable(sooner)} is always sooner"
    holds = Bounds.of(settings).hold
    if engine is None or not engine.counts_tokens:
        if settings.context_policy == "clamp":
            yield f"{PREFIX}CONTEXT_POLICY=clamp has no effect here: the lengths of prompts cannot be seen"
        if half := settings.variables(_NEED_TOKENS):
            yield f"answers that are no streams are not limited by {', '.join(half)} once the engine has the request"
        if tokens := settings.variables(_COUNT_TOKENS):
            yield f"prompts are measured by their size, and not by their tokens, for {', '.join(tokens)}"
        if settings.max_queued and not holds:
            yield f"{PREFIX}MAX_QUEUED without {PREFIX}MAX_INFLIGHT counts a request without a stream until its end"
    if not holds:
        for name in ("max_queued", "max_queued_tokens"):
            if getattr(settings, name) == 0:
                yield f"{variable(name)}=0 without {PREFIX}MAX_INFLIGHT refuses every request to the engine"
