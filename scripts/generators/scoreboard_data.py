"""What the committed reports (docs/conformance/*.json) come to, as the pages show it: counted by vector, not by case.

A vector counts as right if it is right however its bytes are cut, and by the worst verdict otherwise. What the profile of a
report does not ask for is left out. Where a vector's expectation is the contract's own choice, the other view is no fault.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FINE = frozenset({"right", "skipped"})
# No view of what is expected makes these right.
NEVER_A_CHOICE = frozenset({"hang", "crash", "unable"})
# A row of contract/README.md's table: kind (empty: as in the row before), areas, what they are about.
_AREAS = re.compile(r"^\| (\w*) ?\| (`[^|]+`) \| (.+) \|$", re.MULTILINE)


class ReportsError(ValueError):
    """A committed report cannot be shown; the message names it and says what to do."""


@dataclass(frozen=True)
class Finding:
    """What went otherwise than expected in one vector, under those segmentations that it went the same way in."""

    vector: str
    area: str
    verdict: str
    cuts: tuple[str, ...]
    reasons: tuple[str, ...]
    expected: Json
    said: Json | None
    wire: tuple[str, ...]
    known: str | None
    choice: str | None  # the contract's reason, if this is another view of it rather than a fault


@dataclass
class Tally:
    """The vectors of an area, or of several."""

    right: int = 0
    choice: int = 0
    skipped: int = 0
    red: Counter[str] = field(default_factory=Counter)

    @property
    def played(self) -> int:
        return self.right + self.choice + self.red.total()

    def add(self, other: Tally) -> None:
        self.right += other.right
        self.choice += other.choice
        self.skipped += other.skipped
        self.red += other.red


@dataclass(frozen=True)
class Tested:
    """One implementation; ``key`` is its report's file name without ``.json``."""

    key: str
    kind: str
    name: str
    version: str
    language: str
    note: str
    profile: str | None
    contract: str
    areas: Mapping[str, Tally]
    total: Tally
    findings: tuple[Finding, ...]
    lacking: Mapping[str, int]  # undeclared capabilities to the vectors that were skipped for them
    unreported: Mapping[str, int]  # members that it has no notion of to the vectors where they were not compared
    unplayed: int  # vectors of the contract that are newer than the report


@dataclass(frozen=True)
class Vector:
    """What the contract says of a vector."""

    description: str
    rules: tuple[str, ...]
    choice: str | None
    path: str  # within the repository


@dataclass(frozen=True)
class Board:
    """Everything on the pages."""

    contract: str
    verdicts: Mapping[str, str]  # to what each means, the worst first
    tested: tuple[Tested, ...]  # clients, then servers; by name
    vectors: Mapping[tuple[str, str], Vector]  # by kind and id
    about: Mapping[str, tuple[tuple[tuple[str, ...], str], ...]]  # by kind: areas, and what they are about

    def of(self, kind: str) -> list[Tested]:
        return [each for each in self.tested if each.kind == kind]

    def areas(self, kind: str) -> list[str]:
        return sorted({area for each in self.of(kind) for area in each.areas})


def load(root: Path) -> Board:
    """Read the reports and the contract of a checkout; raises ReportsError, OSError."""
    contract = root / "contract"
    schema = json.loads((contract / "schemas/report.json").read_text(encoding="utf-8"))
    verdicts = {row["const"]: row["description"] for row in schema["$defs"]["verdict"]["oneOf"]}
    vectors = dict(_vectors(contract))
    paths = sorted((root / "docs/conformance").glob("*.json"))
    tested = [_tested(path, list(verdicts), vectors) for path in paths]
    return Board(
        contract=(contract / "VERSION").read_text(encoding="utf-8").strip(),
        verdicts=verdicts,
        tested=tuple(sorted(tested, key=lambda each: (each.kind, each.name.casefold(), each.version, each.key))),
        vectors=vectors,
        about=_about((contract / "README.md").read_text(encoding="utf-8")),
    )


def _about(readme: str) -> dict[str, tuple[tuple[tuple[str, ...], str], ...]]:
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    kind = ""
    for named, areas, about in _AREAS.findall(readme.partition("| Kind | Area | Is about |")[2].partition("\n\n")[0]):
        kind = named or kind
        found.setdefault(kind, []).append((tuple(re.findall("`(.+?)`", areas)), about))
    if not {"client", "server"} <= found.keys():
        raise ReportsError("contract/README.md has no table of the areas, headed Kind, Area, Is about: restore it")
    return {kind: tuple(rows) for kind, rows in found.items()}


def _vectors(contract: Path) -> Iterable[tuple[tuple[str, str], Vector]]:
    for kind in ("client", "server"):
        for path in sorted((contract / "vectors" / kind).glob("*.json")):
            raw = json.loads(path.read_text(encoding="utf-8"))
            name = f"contract/vectors/{kind}/{path.name}"
            yield (kind, raw["id"]), Vector(raw["description"], tuple(raw["requirements"]), raw.get("choice"), name)


def _tested(path: Path, order: list[str], vectors: Mapping[tuple[str, str], Vector]) -> Tested:
    try:
        report: Json = json.loads(path.read_text(encoding="utf-8"))
        made, kind = report["implementation"], report["kind"]
        cases = [case for case in report["cases"] if case.get("required", True)]
        by_vector = {name: list(group) for name, group in groupby(cases, key=lambda case: case["vector"])}
        findings = [each for group in by_vector.values() for each in _findings(group)]
        areas: dict[str, Tally] = {}
        for group in by_vector.values():
            areas.setdefault(group[0]["area"], Tally()).add(_tally(group, order))
        total = Tally()
        for each in areas.values():
            total.add(each)
        return Tested(
            key=path.stem,
            kind=kind,
            **{name: made[name] for name in ("name", "version", "language", "note")},
            profile=report["profile"],
            contract=report["contract"],
            areas=areas,
            total=total,
            findings=tuple(sorted(findings, key=lambda each: (each.area, order.index(each.verdict), each.vector))),
            lacking=_lacking(by_vector.values(), frozenset(made["capabilities"])),
            unreported=Counter(name for group in by_vector.values() for name in _names(group, "unreported")),
            unplayed=sum(known == kind and name not in by_vector for known, name in vectors),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReportsError(f"{path.name} is no report ({error!r}): make it again with `make scoreboard`") from error


def _tally(cases: list[Json], order: list[str]) -> Tally:
    """One vector's cases as a tally of one."""
    played = [case for case in cases if case["verdict"] != "skipped"]
    faults = [case for case in played if case["verdict"] != "right" and not _is_choice(case)]
    if faults:
        return Tally(red=Counter([min((case["verdict"] for case in faults), key=order.index)]))
    if any(case["verdict"] != "right" for case in played):
        return Tally(choice=1)
    return Tally(right=1) if played else Tally(skipped=1)


def _is_choice(case: Json) -> bool:
    """Whether the case differs only as the contract's choice lets one differ: a broken answer is whole for nobody else.

    A server says no outcome; one that is silent has sent the answer as completed.
    """
    if "choice" not in case or case["verdict"] in NEVER_A_CHOICE:
        return False
    said = (case.get("said") or {}).get("outcome", "completed")
    return bool(case["verdict"] != "silent" or said == case.get("choice_outcome"))


def _findings(cases: list[Json]) -> Iterable[Finding]:
    alike: dict[str, list[Json]] = {}
    for case in cases:
        if case["verdict"] not in FINE:
            told = [case.get(name) for name in ("verdict", "reasons", "said", "wire", "known")]
            alike.setdefault(json.dumps(told), []).append(case)
    for group in alike.values():
        first = group[0]
        yield Finding(
            vector=first["vector"],
            area=first["area"],
            verdict=first["verdict"],
            cuts=tuple(case["name"].partition("@")[2] or "event" for case in group),
            reasons=tuple(first.get("reasons", ())),
            expected=first["expected"],
            said=first.get("said"),
            wire=tuple(first.get("wire", ())),
            known=first.get("known"),
            choice=first["choice"] if _is_choice(first) else None,
        )


def _lacking(groups: Iterable[list[Json]], declared: frozenset[str]) -> Counter[str]:
    skipped = (group for group in groups if all(case["verdict"] == "skipped" for case in group))
    return Counter(need for group in skipped for need in _names(group, "needs") - declared)


def _names(cases: Iterable[Json], member: str) -> frozenset[str]:
    return frozenset(name for case in cases for name in case.get(member, ()))
