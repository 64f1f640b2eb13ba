"""Distributions of times in bounded memory: counts in buckets whose bounds grow by 2 %.

A quantile is then right to 1 % of its value, however many values there were.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

_GROWTH: Final = math.log(1.02)
_LEAST: Final = 1e-3  # milliseconds; what is shorter is nothing


class Sketch:
    """Milliseconds, one after the other."""

    __slots__ = ("_buckets", "_none", "count", "largest", "total")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._none = 0
        self.count = 0
        self.total = 0.0
        self.largest = 0.0

    def add(self, value: float) -> None:
        """Take one value, which is not negative."""
        self.count += 1
        self.total += value
        self.largest = max(self.largest, value)
        if value < _LEAST:
            self._none += 1
        else:
            bucket = math.ceil(math.log(value) / _GROWTH)
            self._buckets[bucket] = self._buckets.get(bucket, 0) + 1

    def merge(self, other: Sketch) -> None:
        """Take all values of another."""
        self.count += other.count
        self.total += other.total
        self.largest = max(self.largest, other.largest)
        self._none += other._none
        for bucket, number in other._buckets.items():
            self._buckets[bucket] = self._buckets.get(bucket, 0) + number

    def quantile(self, share: float) -> float | None:
        """The value that ``share`` of all values do not exceed; None where there are none."""
        if not self.count:
            return None
        wanted = max(math.ceil(share * self.count), 1) - self._none
        if wanted <= 0:
            return 0.0
        for bucket in sorted(self._buckets):
            wanted -= self._buckets[bucket]
            if wanted <= 0:
                return min(math.exp((bucket - 0.5) * _GROWTH), self.largest)
        return self.largest

    def buckets(self) -> Iterator[tuple[float, int]]:
        """The middle of each bucket and how many values it has, smallest first."""
        if self._none:
            yield 0.0, self._none
        for bucket in sorted(self._buckets):
            yield math.exp((bucket - 0.5) * _GROWTH), self._buckets[bucket]
