"""What the judges find, and what several findings come to: the worst is the verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lastword.conformance._results import Verdict
from lastword.conformance.show._printable import shortened


class Fault(NamedTuple):
    """One thing that is not as the vector wants it, and how bad that is. The reason is the same in every run."""

    verdict: Verdict
    reason: str


def settle(faults: Iterable[Fault]) -> tuple[Verdict, tuple[str, ...]]:
    """Give the worst verdict, and every reason, the worst first."""
    ordered = sorted(faults, key=lambda fault: fault.verdict.severity)
    return (ordered[0].verdict if ordered else Verdict.RIGHT), tuple(
        dict.fromkeys(shortened(fault.reason) for fault in ordered)
    )
