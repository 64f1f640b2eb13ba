"""Invented runs over the contract's real vectors, for the tests of what shows runs. Nothing of them is ever committed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from lastword._contract import vectors
from lastword.conformance._results import Case, CaseResult, Entry, Implementation, Kind, Run, Verdict
from lastword.conformance.show import _report

NASTY: Final = "\x1b[31m<script>alert('x')</script>\x00\u202e]]>&\"\ud800\uffff\x0b|`"
"""What a text of somebody else's may hold: a terminal's escape, markup, a NUL, a lone surrogate."""

_FAULTS: Final = {
    Verdict.SILENT: "outcome is completed (None), not incomplete",
    Verdict.HANG: "no answer within the 2000 ms that the vector gives",
    Verdict.CRASH: "the adapter ended with status 1",
    Verdict.OVER_RETRY: "the server counted 3 requests, not 1",
    Verdict.FALSE_ALARM: "outcome is failed (bad_gateway), not completed",
    Verdict.WRONG_CODE: "code is internal_server_error, not queue_overloaded: An error occurred during streaming",
    Verdict.LEAK: "the server counted 3 connections, not 1",
    Verdict.DETAIL: "text is 'Hel', not 'Hello'",
}
_WIRE: Final = (
    '> POST /v1/chat/completions {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": true}',
    "< 200 text/event-stream, chunked",
    '< data: {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hel"}}]}',
    "< end: FIN before the last chunk",
)


def result_of(case: Case, verdict: Verdict, **given: Any) -> CaseResult:
    """What a case came to, with everything that the verdict implies."""
    if verdict in {Verdict.RIGHT, Verdict.SKIPPED}:
        reasons = (f"not declared: {', '.join(sorted(case.needs))}",) if verdict is Verdict.SKIPPED else ()
        return CaseResult(case, verdict, **{"reasons": reasons, **given})
    fault = {
        "reasons": (_FAULTS.get(verdict, "could not be tried"),),
        "said": {"outcome": "completed", "code": None, "text": "Hel"},
        "wire": _WIRE,
        "trace": tuple(f"{at:>6} ms  {line}" for at, line in zip((0, 1, 12, 40), _WIRE, strict=True)),
        "seconds": 0.05,
    }
    return CaseResult(case, verdict, **{**fault, **given})


def case_of(name: str, *, kind: Kind = "client", **members: Any) -> Case:
    """A case by its name, of a vector with the members given."""
    vector_id, _, segmentation = name.partition("@")
    expect = {"outcome": "incomplete", "code": "stream_incomplete"}
    return Case(kind, {"id": vector_id, "expect": expect, **members}, segmentation or "event")


def run_of(*entries: Entry, kind: Kind = "client", **given: Any) -> Run:
    """A run of an implementation that declares `cancel` only."""
    made = Implementation("some-client", "1.2.3", "python", frozenset({"cancel"}), "Its errors are mapped by class.")
    return Run(
        **{"kind": kind, "implementation": made, "contract": "1.0", "profile": None, "entries": entries, **given}
    )


def invented(name: str, *, language: str = "python", kind: Kind = "client", faults: float = 0.2, note: str = "") -> Run:
    """A run over every vector of its kind; the same name gives the same run."""
    chance = random.Random(f"{kind} {name}")
    declared = frozenset(each for each in ("cancel", "retry", "idle", "completions") if chance.random() < 0.7)
    made = Implementation(name, f"{chance.randrange(4)}.{chance.randrange(60)}.0", language, declared, note)
    entries = (_invented(case, declared, chance, faults) for case in _cases(kind))
    return run_of(*entries, kind=kind, implementation=made, profile="draft")


@cache
def _cases(kind: Kind) -> list[Case]:
    return [
        Case(kind, vector, segmentation)
        for vector in vectors(kind)
        for segmentation in vector.get("segmentations", ("event",))
    ]


def _invented(case: Case, declared: frozenset[str], chance: random.Random, faults: float) -> Entry:
    if case.needs - declared:
        return Entry(result_of(case, Verdict.SKIPPED))
    if chance.random() >= faults:
        return Entry(result_of(case, Verdict.RIGHT, seconds=0.02))
    verdict = chance.choice(list(_FAULTS))
    return Entry(result_of(case, verdict), known="it has no such notion" if chance.random() < 0.7 else None)


def checkout_with(root: Path, runs: Mapping[str, Run]) -> Path:
    """A checkout of this contract with these reports, by file name."""
    (root / "docs/conformance").mkdir(parents=True)
    (root / "contract").symlink_to(Path(__file__).parents[2] / "contract")
    for name, run in runs.items():
        _report.write(run, root / f"docs/conformance/{name}.json")
    return root


def many_runs() -> dict[str, Run]:
    """As many runs as the scoreboard will have one day; three of them without a fault."""
    clients = {f"client-{number}": f"client {number} with a name" for number in range(12)}
    runs = {key: invented(name, language="javascript" if "1" in key else "python") for key, name in clients.items()}
    runs |= {f"right-{number}": invented(f"Right {number}", faults=0, note="It is by the book.") for number in range(3)}
    servers = {f"server-{number}": invented(f"server {number}", kind="server", faults=0.4) for number in range(5)}
    return runs | servers
