"""The account of many records, taken one at a time.  Pure, and bounded in memory however many there are.

Counted are attempts, as one side saw them: the server's where there are any, else the client's; and of these what asked for
work: whether a poll of ``/v1/models`` was answered says nothing of the traffic.  A record without ``operation`` counts too.

* *received*: all.  *rejected*: refused before they reached the engine's queue.  *admitted*: the others.
* *started*: the engine had begun, as far as the record tells: it knows a queue time, a token, or a whole answer.
* *disconnected*: the client left before the end, while queued or while generating.
* *useful* tokens are those of answers that completed; *wasted* those made for clients that left (REC-3); *lost* those of
  answers that ended otherwise.  Where answers have no token count their sum is unknown, and not nothing.
  Wasted seconds run from the first token until the engine had stopped.
* *effective completion rate*: completed of admitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from lastword.report._pairs import OTHERS, Pairs
from lastword.report._sketch import Sketch
from lastword.report._timeline import Timeline

MOST_NAMES: Final = 50
NAMELESS: Final = "(not told)"
ENDS: Final = ("completed", "disconnected", "cancelled", "failed", "incomplete", "rejected")
"""How an attempt can end; the first series of a timeline, in this order.  Behind them: tokens useful, wasted, lost."""
TOKENS: Final = ("useful", "wasted", "lost")
_SERIES: Final = {name: index for index, name in enumerate((*ENDS, *TOKENS))}

_WHAT: Final = {"completed": "useful", "disconnected": "wasted"}
_MAKE_TOKENS: Final = frozenset({"chat", "text_completion"})
"""Operations whose answers are tokens: an embedding lacks no count."""

_SUMS: Final = (
    *("started", "left_queued", "left_generating", "wasted", "wasted_seconds"),
    "tokens_after_disconnect",
)


@dataclass(slots=True)
class Tally:
    """What came of a group of attempts."""

    ends: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    uncounted: Counter[str] = field(default_factory=Counter)
    """Answers whose tokens nobody counted, by what those were."""
    started: int = 0
    left_queued: int = 0
    left_generating: int = 0
    wasted: int = 0
    wasted_seconds: float = 0.0
    tokens_after_disconnect: int = 0
    queue: Sketch = field(default_factory=Sketch)
    first_token: Sketch = field(default_factory=Sketch)
    generation: Sketch = field(default_factory=Sketch)
    total: Sketch = field(default_factory=Sketch)

    @property
    def received(self) -> int:
        """All attempts."""
        return sum(self.ends.values())

    @property
    def admitted(self) -> int:
        """Those that were not rejected."""
        return self.received - self.ends["rejected"]

    @property
    def completed(self) -> int:
        """Those with a whole answer that somebody took."""
        return self.ends["completed"]

    @property
    def completion_rate(self) -> float | None:
        """Completed of admitted; None where none was."""
        return self.completed / self.admitted if self.admitted else None

    def made(self, *what: str) -> int | None:
        """The sum of tokens of these kinds; None where nobody has counted them, or any at all."""
        found = sum(self.tokens[each] for each in what)
        unknown = sum(self.uncounted[each] for each in what) if self.tokens.total() else self.uncounted.total()
        return found if found or not unknown else None

    def take(self, record: Mapping[str, Any], end: str) -> str | None:
        """Count one; gives what its tokens were."""
        self.ends[end] += 1
        code = record["error_code"]
        if code is not None:
            _count(self.codes, code)
        tokens, first, total = record["completion_tokens"], record["time_to_first_token_ms"], record["total_time_ms"]
        queue, generation = record["queue_time_ms"], record["generation_time_ms"]
        if end == "completed" or tokens or first is not None or queue is not None:
            self.started += 1
        if queue is not None:
            self.queue.add(queue)
        if first is not None:
            self.first_token.add(first)
        if end == "completed":
            if generation is not None:
                self.generation.add(generation)
            if total is not None:
                self.total.add(total)
        elif end == "disconnected":
            self._left(record)
        what = _WHAT.get(end, "lost")
        if tokens is None and _lacks_a_count(record, end):
            self.uncounted[what] += 1
        self.tokens[what] += tokens or 0
        return what if tokens else None

    def merge(self, other: Tally) -> None:
        """Count everything that another has counted."""
        for name in ("ends", "codes", "tokens", "uncounted"):
            getattr(self, name).update(getattr(other, name))
        for name in ("queue", "first_token", "generation", "total"):
            getattr(self, name).merge(getattr(other, name))
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def _left(self, record: Mapping[str, Any]) -> None:
        if record["disconnect_phase"] == "generating":
            self.left_generating += 1
        else:
            self.left_queued += 1
        self.tokens_after_disconnect += record["tokens_after_disconnect"] or 0
        if record["wasted"]:
            self.wasted += 1
            first, total = record["time_to_first_token_ms"], record["total_time_ms"]
            if first is not None and total is not None:
                after = record["generation_time_after_disconnect_ms"] or 0.0
                self.wasted_seconds += (max(total - first, 0.0) + after) / 1000


@dataclass(slots=True)
class Side:
    """What one side saw; ``others`` asked for no work, and are counted nowhere else."""

    count: int = 0
    others: int = 0
    models: dict[str, Tally] = field(default_factory=dict)
    timeline: Timeline = field(default_factory=lambda: Timeline(len(_SERIES)))
    first: float | None = None
    last: float | None = None

    @property
    def tally(self) -> Tally:
        """Of all models together."""
        merged = Tally()
        for each in self.models.values():
            merged.merge(each)
        return merged

    @property
    def seconds(self) -> float:
        """From the first receipt to the last end."""
        return 0.0 if self.first is None or self.last is None else max(self.last - self.first, 0.0)

    @property
    def useful_per_second(self) -> float | None:
        """Tokens of completed answers per second of the whole time; None where that is nothing, or nobody counted."""
        useful = self.tally.made("useful")
        return useful / self.seconds if self.seconds and useful is not None else None

    def take(self, record: Mapping[str, Any], received: float) -> None:
        """Count one; ``received`` in seconds since 1970."""
        self.count += 1
        end = end_of(record)
        ended = received + (record["total_time_ms"] or 0.0) / 1000
        self.first = received if self.first is None else min(self.first, received)
        self.last = ended if self.last is None else max(self.last, ended)
        name = record["model"] or NAMELESS
        group = self.models.get(name)
        if group is None:
            name = name if len(self.models) < MOST_NAMES else OTHERS
            group = self.models.setdefault(name, Tally())
        what = group.take(record, end)
        sums = self.timeline.bin(ended)
        sums[_SERIES[end]] += 1
        if what is not None:
            sums[_SERIES[what]] += record["completion_tokens"]


class Account:
    """The account of records of both sides, as they come."""

    def __init__(self) -> None:
        self.sides = {"server": Side(), "client": Side()}
        self.pairs = Pairs()

    @property
    def side(self) -> str:
        """Whose account it is: the server's where it has left any record that counts."""
        return "server" if self.sides["server"].count or not self.sides["client"].count else "client"

    @property
    def main(self) -> Side:
        """What that side saw."""
        return self.sides[self.side]

    @property
    def is_empty(self) -> bool:
        """Whether there was no record that counts."""
        return not self.main.count

    def take(self, record: Mapping[str, Any], received: datetime) -> None:
        """Count one record that was found to be one; ``received`` is its ``received_at``."""
        side = self.sides[record["side"]]
        if record.get("operation", "") is None:
            side.others += 1
            return
        side.take(record, received.timestamp())
        self.pairs.take(record)


def end_of(record: Mapping[str, Any]) -> str:
    """Under which of `ENDS` a record is counted."""
    if record["state"] == "rejected":
        return "rejected"
    if record["client_disconnected"] or record["error_code"] == "client_disconnected":
        return "disconnected"
    outcome: str = record["outcome"]
    return outcome


def _lacks_a_count(record: Mapping[str, Any], end: str) -> bool:
    """Whether tokens were made of which nobody said how many."""
    if end == "disconnected":
        return bool(record["wasted"])
    begun = end == "completed" or record["time_to_first_token_ms"] is not None
    return begun and record.get("operation", "chat") in _MAKE_TOKENS


def _count(counter: Counter[str], name: str) -> None:
    counter[name if name in counter or len(counter) < MOST_NAMES else OTHERS] += 1
