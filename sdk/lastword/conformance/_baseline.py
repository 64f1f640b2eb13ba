"""The failures that an implementation is known to have, each with its reason: ``pattern  # reason``, one a line.

A listed failure does not fail the run. A line that no failing case matches any more is stale and does: gaps that were
closed stay closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lastword.conformance._cases import Selection, matches
from lastword.conformance._results import ConformanceError


@dataclass(frozen=True, slots=True)
class Line:
    """One known failure."""

    pattern: str
    reason: str
    where: str  # file:line

    def __str__(self) -> str:
        return f"{self.where}: {self.pattern}  # {self.reason}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The lines of a file, in order; the first that names a case gives its reason."""

    lines: tuple[Line, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; ``ConformanceError`` names the line that is wrong and what it lacks."""
        try:
            text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
        except (OSError, ValueError) as error:
            raise ConformanceError(f"baseline {path}: cannot be read: {error}") from error
        lines: list[Line] = []
        for number, raw in enumerate(text.splitlines(), 1):
            if not raw.strip() or raw.lstrip().startswith("#"):
                continue
            pattern, mark, reason = (part.strip() for part in raw.partition("#"))
            where = f"{path}:{number}"
            if not mark or not reason:
                raise ConformanceError(f"{where}: {pattern} has no reason: write `{pattern}  # why it fails`")
            if len(pattern.split()) != 1:
                raise ConformanceError(f"{where}: {pattern!r} is not one pattern: one a line")
            if any(line.pattern == pattern for line in lines):
                raise ConformanceError(f"{where}: {pattern} is listed twice")
            lines.append(Line(pattern, reason, where))
        return cls(tuple(lines))

    def reason(self, name: str) -> str | None:
        """Why this case is known to fail; None if it is not."""
        return next((line.reason for line in self.lines if matches(line.pattern, name)), None)

    def stale(self, selection: Selection, failing: Iterable[str]) -> tuple[str, ...]:
        """Give the lines that no failing case matches, less those whose cases this run left out."""
        failed = tuple(failing)
        return tuple(
            str(line)
            for line in self.lines
            if not _any_of(line, failed)
            and not _any_of(line, selection.left_out)
            and (_any_of(line, (case.name for case in selection.cases)) or not _any_of(line, selection.elsewhere))
        )


def _any_of(line: Line, names: Iterable[str]) -> bool:
    return any(matches(line.pattern, name) for name in names)
