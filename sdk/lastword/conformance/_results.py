"""What the suite says of one case and of a whole run: the words that the runners, the screen and the reports share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from lastword._command_error import CommandError

Kind = Literal["client", "server"]


class ConformanceError(CommandError):
    """The suite could not run, or cannot tell what is wanted of it; the message says why and what to do."""


class Verdict(StrEnum):
    """What became of one case, the worst first; a case with several faults has the first that fits."""

    SILENT = "silent"
    """A broken answer was reported, or sent, as a whole one: the fault that this project exists for.

    So is an answer with a piece of its text missing that is called whole, and one that was never asked for.
    """
    HANG = "hang"
    """No answer in the time that the vector gives."""
    CRASH = "crash"
    """The implementation, or its adapter, ended or broke the protocol."""
    UNABLE = "unable"
    """The adapter could not even try; a capability that it did not declare would have been a skip."""
    OVER_RETRY = "over_retry"
    """More requests than the rules allow."""
    FALSE_ALARM = "false_alarm"
    """A whole answer was reported, or sent, as a broken one."""
    WRONG_CODE = "wrong_code"
    """The failure was noticed, and called something else: caller or retry policy act on the wrong cause."""
    LEAK = "leak"
    """A socket stayed open, a connection was not used again, or the engine went on for nobody."""
    DETAIL = "detail"
    """All of that is right, and something smaller is not: a text, a number, a header, a retry that was not made."""
    RIGHT = "right"
    SKIPPED = "skipped"
    """The vector needs a capability that was not declared; the only lawful skip."""

    @property
    def severity(self) -> int:
        """Its place in the order above: 0 is the worst."""
        return _ORDER[self]


_ORDER: Final = {verdict: place for place, verdict in enumerate(Verdict)}
PASSED: Final = frozenset({Verdict.RIGHT, Verdict.SKIPPED})
"""Verdicts that are no failure."""
_NEVER_A_CHOICE: Final = frozenset(
    {Verdict.HANG, Verdict.CRASH, Verdict.UNABLE}
)  # no view of what is expected makes these right


@dataclass(frozen=True, slots=True)
class Case:
    """One vector under one segmentation.

    ``name`` is the vector's id (``ending/no-done``), with ``@7`` behind it unless the segmentation is ``event``.
    """

    kind: Kind
    vector: Mapping[str, Any]
    segmentation: str = "event"

    @property
    def id(self) -> str:
        """The vector's id."""
        return str(self.vector["id"])

    @property
    def area(self) -> str:
        """The first part of the id: ``ending``."""
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        """The case's own name, unique in a run."""
        return self.id if self.segmentation == "event" else f"{self.id}@{self.segmentation}"

    @property
    def needs(self) -> frozenset[str]:
        """Capabilities without which it cannot be played."""
        return frozenset(self.vector.get("needs", ()))

    @property
    def choice(self) -> str | None:
        """Why one may see it otherwise, where what is expected is the contract's choice rather than plain truth."""
        choice: str | None = self.vector.get("choice")
        return choice


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What a case came to.

    ``reasons``  one sentence for each difference; empty if right; why, if skipped
    ``said``     what the implementation reported: for a client its outcome (``schemas/outcome.json``), for a server its
                 status, terminal and error; volatile things (ports, times, generated ids) are left out or named ``$…``
    ``wire``     what was on the wire, a line for each thing, the same in every run
    ``trace``    the wire as logged, with milliseconds; never part of a report
    ``seconds``  never part of a report
    ``unreported``  members that the vector expects and the implementation has no notion of, so not compared
    """

    case: Case
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    said: Mapping[str, Any] | None = None
    wire: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    seconds: float = 0.0
    unreported: tuple[str, ...] = ()

    @property
    def is_own_choice(self) -> bool:
        """Whether it fails only as the contract's choice lets one differ: a broken answer is whole for nobody else.

        A server says no outcome; one that is silent has sent the answer as completed.
        """
        if self.case.choice is None or self.verdict in PASSED | _NEVER_A_CHOICE:
            return False
        said = (self.said or {}).get("outcome", "completed")
        return bool(self.verdict is not Verdict.SILENT or said == self.case.vector.get("choice_outcome"))


@dataclass(frozen=True, slots=True)
class Implementation:
    """What was tested, in its own (or its adapter's) words."""

    name: str
    version: str
    language: str
    capabilities: frozenset[str]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A result, what the baseline has on it, and whether the profile asks for it."""

    result: CaseResult
    known: str | None = None  # the baseline's reason for a failure that it lists
    required: bool = True  # False: played, and not scored, since the profile does not name the vector

    @property
    def fails(self) -> bool:
        """Whether it fails the run: not right, not in the baseline, and asked for by the profile."""
        return self.required and self.known is None and self.result.verdict not in PASSED


@dataclass(frozen=True, slots=True)
class Run:
    """A whole run, as it is shown, reported and turned into an exit status."""

    kind: Kind
    implementation: Implementation
    contract: str
    profile: str | None
    entries: tuple[Entry, ...]
    stale: tuple[str, ...] = ()  # baseline lines that no failing case matches any more

    @property
    def failures(self) -> list[Entry]:
        """The entries that fail the run."""
        return [each for each in self.entries if each.fails]

    @property
    def played(self) -> bool:
        """Whether there is anything to be judged by: a case that is asked for, and was not skipped."""
        return any(each.required and each.result.verdict is not Verdict.SKIPPED for each in self.entries)

    @property
    def lacking(self) -> Mapping[str, int]:
        """Capabilities that were not declared, to the number of cases that were skipped for want of them."""
        skipped = [
            each.result.case for each in self.entries if each.required and each.result.verdict is Verdict.SKIPPED
        ]
        return Counter(need for case in skipped for need in sorted(case.needs - self.implementation.capabilities))


class Listener(Protocol):
    """Told of a run while it goes on: a progress display, or nobody."""

    def begins(self, implementation: Implementation, cases: int) -> None:
        """Hear how many cases there will be."""
        ...

    def plays(self, case: Case) -> None:
        """Hear that a case begins."""
        ...

    def ended(self, result: CaseResult) -> None:
        """Hear what it came to."""
        ...
