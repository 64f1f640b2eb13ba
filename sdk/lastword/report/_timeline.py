"""Counts over time in bounded memory: bins that double their width whenever there would be too many."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

MOST_BINS: Final = 240
LEAST_WIDTH: Final = 0.125
"""Seconds; a power of two, so that no bin's bound is rounded."""
LEAST_SHOWN: Final = 1.0
"""Seconds of a bin that is shown: one attempt in less looks like many a second."""
_SEVERAL: Final = 5  # to a bin that is shown


class Timeline:
    """Sums of several series, ``series`` of them, in bins of ``width`` seconds."""

    __slots__ = ("_bins", "_first", "_last", "_series", "width")

    def __init__(self, series: int) -> None:
        self._series = series
        self._bins: dict[int, list[float]] = {}
        self._first = self._last = 0
        self.width = LEAST_WIDTH

    def bin(self, at: float) -> list[float]:
        """The sums of the bin that ``at`` (seconds since 1970) falls into, to be added to."""
        number = int(at // self.width)
        found = self._bins.get(number)
        if found is None:
            number = self._reach(at, number)
            found = self._bins.setdefault(number, [0.0] * self._series)
        return found

    def bins(self) -> Iterator[tuple[float, list[float]]]:
        """Each bin's begin and sums, those between the first and the last that are empty too."""
        if self._bins:
            for number in range(self._first, self._last + 1):
                yield number * self.width, self._bins.get(number, [0.0] * self._series)

    def readable(self, number: int) -> float:
        """A width of bins in which ``number`` events are several to each; a multiple of `width`."""
        wanted = max((self._last - self._first + 1) * self.width * _SEVERAL / max(number, 1), LEAST_SHOWN)
        width = self.width
        while width < wanted:
            width *= 2
        return width

    def wider(self, width: float) -> list[tuple[float, float, list[float]]]:
        """Begin, width and sums of bins of ``width`` from a full second on; the last takes the rest, or is a shorter one."""
        found = list(self.bins())
        if not found:
            return []
        first, last = math.floor(found[0][0]), math.ceil(found[-1][0] + self.width)
        number = max(round((last - first) / width), 1)
        merged = [[0.0] * self._series for _ in range(number)]
        for begin, sums in found:
            into = merged[min(int((begin - first) // width), number - 1)]
            for index, value in enumerate(sums):
                into[index] += value
        begins = [first + index * width for index in range(number)]
        return [
            (begin, end - begin, sums) for begin, end, sums in zip(begins, [*begins[1:], last], merged, strict=True)
        ]

    def _reach(self, at: float, number: int) -> int:
        if not self._bins:
            self._first = self._last = number
        while max(self._last, number) - min(self._first, number) >= MOST_BINS:
            self._coarsen()
            number = int(at // self.width)
        self._first, self._last = min(self._first, number), max(self._last, number)
        return number

    def _coarsen(self) -> None:
        halved: dict[int, list[float]] = {}
        for number, sums in self._bins.items():
            into = halved.setdefault(number // 2, [0.0] * self._series)
            for index, value in enumerate(sums):
                into[index] += value
        self._bins = halved
        self._first, self._last, self.width = self._first // 2, self._last // 2, self.width * 2
