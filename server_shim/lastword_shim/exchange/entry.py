"""The way in of one exchange: what it reserves, whether waiting is any use, and what it gives back."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from lastword._classify import ErrorInfo
from lastword_shim.admission.bounds import Place
from lastword_shim.admission.estimate import Weight, weigh
from lastword_shim.engine import Ticket

if TYPE_CHECKING:
    from lastword_shim._core import Core
_SILENCE: Final = ("x-stainless-read-timeout", "x-stainless-timeout")  # the Python SDKs', the JavaScript ones'


class Entry:
    """One exchange's place.  ``deadline_ms`` is the caller's, from receipt."""

    def __init__(self, core: Core, ticket: Ticket, headers: Mapping[str, str], deadline_ms: int | None) -> None:
        self._core = core
        self._ticket = ticket
        self._deadline_at = None if deadline_ms is None else time.monotonic() + deadline_ms / 1000
        told = [_seconds(headers.get(name)) for name in _SILENCE]
        self._silence = min((seconds for seconds in told if seconds is not None), default=None)
        self._weight = Weight()
        self._place: Place | None = None
        self._gives_back = False

    def check(self) -> None:
        """Before its body is read.

        Raises:
            Refusal: there is neither a place for it nor room to wait, or no use in waiting.
        """
        self._core.places.check(self._patience(stream=True))

    def reserve(
        self, body: bytes, content_type: str, began: Callable[[], float | None], *, tells: bool, stream: bool
    ) -> Place:
        """A place, or a stand in the line for one; ``began`` and ``tells`` are those of `Place`.

        Raises:
            Refusal: others have come first while the body was read, or there is no use in waiting.
        """
        tokens = 1
        if self._core.places.count_tokens:
            self._weight = weigh(body, content_type)
            tokens = self._core.rate.tokens(self._weight)
            self._ticket.room = self._room
        self._place = self._core.places.enter(tokens, began, tells=tells, patience=self._patience(stream=stream))
        return self._place

    def leave(self, *, answered: bool = False) -> None:
        """Give the place back, or the wait for it up; ``answered``: it has had a whole answer."""
        place, self._place = self._place, None
        if place is not None:
            self._core.places.leave(place, answered=answered)

    def learn(self, prompt_tokens: int | None) -> None:
        """How long its prompt was, as the engine or the answer's usage said."""
        if prompt_tokens is not None:
            self._core.rate.learn(self._weight, prompt_tokens)

    def _room(self, tokens: int) -> ErrorInfo | None:
        """Reserve the true length; an error if it does not fit beside the others.

        What was reserved too much is given back a moment later: a request with several prompts tells one after the other.
        """
        if self._place is None:
            return None
        if tokens >= self._place.tokens:
            return self._core.places.correct(self._place, tokens)
        if not self._gives_back:
            self._gives_back = True
            asyncio.get_running_loop().call_soon(self._give_back)
        return None

    def _give_back(self) -> None:
        self._gives_back = False
        tokens = self._ticket.prompt_tokens
        if self._place is not None and tokens is not None and tokens < self._place.tokens:
            self._core.places.correct(self._place, tokens)

    def _patience(self, *, stream: bool) -> float | None:
        """Seconds until the caller gives up, as it says itself; None if it does not, or if that time is over.

        Stock SDKs tell after how many seconds of silence they leave, and a whole answer is silent until its end.
        """
        left = [] if self._deadline_at is None else [self._deadline_at - time.monotonic()]
        if not stream and self._silence is not None:
            left.append(self._silence)
        patience = min(left, default=0.0)
        return patience if patience > 0 else None  # a deadline that has passed has an error of its own


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None
