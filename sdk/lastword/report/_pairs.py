"""What belongs together: the attempts of a request, and the two sides' records of an attempt.

Both are followed over a window of the latest requests, so that memory stays bounded.  A retry comes within minutes, and the
records of one attempt within moments: what falls out of the window has no more to come.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Any, Final

WINDOW: Final = 100_000
MOST_ATTEMPTS: Final = 10
"""Requests with so many attempts, or more, are counted together."""
_MOST_PAIRS: Final = 500
OTHERS: Final = "(others)"
"""What is counted together, since there are more names than are kept."""


class Pairs:
    """Requests by their attempts, and attempts by what each side says of them."""

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._sides: set[str] = set()
        # Ordered ones, for a plain dictionary finds its first entry the slower the more were taken from before it.
        # Side and id → attempts, and whether one completed.
        self._open: OrderedDict[tuple[str, str], list[int]] = OrderedDict()
        self._requests = {"server": _Requests(), "client": _Requests()}
        # Id and attempt → side and last word.
        self._halves: OrderedDict[tuple[str, int], tuple[str, str]] = OrderedDict()
        self.joined: Counter[tuple[str, str]] = Counter()
        """What (client, server) say of an attempt: each ``completed`` or a code."""

    def take(self, record: Mapping[str, Any]) -> None:
        """Take one record."""
        side, request_id, attempt = record["side"], record["request_id"], record["attempt"]
        key = (side, request_id)
        held = self._open.pop(key, None)
        if held is None:
            held = [0, 0]
            if len(self._open) >= self._window:
                oldest, told = self._open.popitem(last=False)
                self._requests[oldest[0]].take(*told)
        held[0] += 1
        held[1] |= record["outcome"] == "completed"
        self._open[key] = held  # at the end: it is the latest
        self._sides.add(side)
        if len(self._sides) > 1:
            self._join((request_id, attempt), side, record["error_code"] or "completed")

    def requests(self, side: str) -> _Requests:
        """What is known of a side's requests, those that may go on included."""
        found = self._requests[side].copy()
        for (each, _), held in self._open.items():
            if each == side:
                found.take(*held)
        return found

    @property
    def both_sides(self) -> bool:
        """Whether there were records of both."""
        return len(self._sides) > 1

    def _join(self, key: tuple[str, int], side: str, word: str) -> None:
        other = self._halves.get(key)
        if other is not None and other[0] != side:
            del self._halves[key]
            pair = (word, other[1]) if side == "client" else (other[1], word)
            known = pair in self.joined or len(self.joined) < _MOST_PAIRS
            self.joined[pair if known else (OTHERS, OTHERS)] += 1
            return
        if other is None and len(self._halves) >= self._window:
            self._halves.popitem(last=False)
        self._halves[key] = (side, word)


class _Requests:
    """Requests of one side by the number of their attempts."""

    def __init__(self) -> None:
        self.count = 0
        self.completed = 0
        self.retried = 0
        self.saved = 0
        """Completed, though not at the first attempt."""
        self.by_attempts: Counter[int] = Counter()
        """How many had so many attempts; `MOST_ATTEMPTS` is "or more"."""

    def take(self, attempts: int, completed: int) -> None:
        self.count += 1
        self.completed += completed
        self.retried += attempts > 1
        self.saved += completed if attempts > 1 else 0
        self.by_attempts[min(attempts, MOST_ATTEMPTS)] += 1

    def copy(self) -> _Requests:
        made = _Requests()
        made.count, made.completed, made.retried, made.saved = self.count, self.completed, self.retried, self.saved
        made.by_attempts = self.by_attempts.copy()
        return made
