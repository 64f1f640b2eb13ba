"""Which cases a run plays: the contract's vectors, the ways to cut the bytes, and the patterns that pick from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Final

from lastword._contract import load, names, vectors
from lastword.conformance._results import Case, ConformanceError, Kind

SEGMENTATIONS: Final = ("event", "whole", "1", "7")
CHOICES: Final = ("listed", "all", *SEGMENTATIONS)
API_KEY: Final = "key-of-the-vectors"
"""What clients are given, and what servers are asked with where nothing else is said."""
_KINDS: Final = ("decode", "client", "retry", "server")


@dataclass(frozen=True, slots=True)
class Selection:
    """What a run plays.

    ``left_out``   names of cases that a whole run would have played
    ``elsewhere``  names of cases that exist, and only under other segmentations than the listed ones
    """

    kind: Kind
    cases: tuple[Case, ...]
    left_out: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Profile:
    """The ids that a version of the contract requires."""

    name: str
    vectors: frozenset[str]


def cases_of(kind: Kind, segmentation: str = "listed") -> list[Case]:
    """Give the cases of a kind: under the vectors' own segmentations (``listed``), under ``all``, or under one."""
    if segmentation not in CHOICES:
        raise ConformanceError(f"segmentation {segmentation!r} is not one of {', '.join(CHOICES)}")
    return [Case(kind, vector, each) for vector in _vectors(kind) for each in _cuts(kind, vector, segmentation)]


@cache
def _vectors(kind: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(vectors(kind))


def _cuts(kind: Kind, vector: Mapping[str, Any], segmentation: str) -> Iterator[str]:
    if segmentation == "listed":
        yield from vector.get("segmentations", ("event",))
        return
    # A body that is no stream has nothing between its two ends that a cut could fall upon wrongly.
    sensible: tuple[str, ...] = SEGMENTATIONS if vector["call"]["stream"] else ("event", "1")
    if kind == "server":  # how its bytes are cut is its own affair
        sensible = ("event",)
    yield from (each for each in sensible if segmentation in ("all", each))


def select(kind: Kind, *, run: Sequence[str] = (), skip: Sequence[str] = (), segmentation: str = "listed") -> Selection:
    """Pick the cases that a pattern of ``run`` names (no pattern: all) and none of ``skip`` does.

    Raises ``ConformanceError`` for a pattern that names no case, and if nothing is left.
    """
    every = cases_of(kind, segmentation)
    for pattern in (*run, *skip):
        if not any(matches(pattern, case.name) for case in every):
            raise ConformanceError(_names_nothing(pattern, kind, every))
    wanted = [
        case
        for case in every
        if (not run or any(matches(pattern, case.name) for pattern in run))
        and not any(matches(pattern, case.name) for pattern in skip)
    ]
    if not wanted:
        raise ConformanceError("--run and --skip together leave no case to play")
    played = {case.name for case in wanted}
    listed, possible = ({case.name for case in cases_of(kind, each)} for each in ("listed", "all"))
    return Selection(kind, tuple(wanted), frozenset(listed - played), frozenset(possible - listed - played))


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern names a case: ``*`` within one component, ``**`` over any number of them.

    A pattern without ``@`` names the vector under every segmentation; ``@event`` is the one that names do not spell out.
    """
    vector, _, segmentation = name.partition("@")
    return (
        _expression(pattern).fullmatch(f"{vector}@{segmentation or 'event'}" if "@" in pattern else vector) is not None
    )


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    within = {"**": ".*", "*": "[^/]*"}
    pattern = re.sub(r"(\*\*/)+", "**/", re.sub(r"\*{3,}", "**", pattern))  # the same, and quickly told not to match
    # "a/**" is everything below a, and "**/b" also the bare b: the slash beside ** belongs to it.
    parts = re.split(r"(\*\*/|\*\*|\*)", pattern)
    return re.compile("".join("(?:.*/)?" if part == "**/" else within.get(part, re.escape(part)) for part in parts))


def _names_nothing(pattern: str, kind: Kind, every: Iterable[Case]) -> str:
    close = nearest(pattern, [case.id for case in every])
    hint = f"did you mean {close}? " if close else ""
    return f"{pattern!r} names no {kind} case: {hint}`lastword conformance list --kind {kind}` shows them all"


def nearest(pattern: str, ids: Iterable[str]) -> str | None:
    """Give what was meant by a pattern that names none of ``ids``: one of them, or all of one area for a pattern with a star."""
    area, _, rest = pattern.partition("@")[0].partition("/")
    if "*" not in pattern:
        close = get_close_matches(pattern.partition("@")[0], sorted(set(ids)), n=1)
        return close[0] if close else None
    close = get_close_matches(area, sorted({each.partition("/")[0] for each in ids}), n=1)
    return f"{close[0]}/{rest or '*'}" if close else None


def load_profile(name: str) -> Profile:
    """Read a profile of the contract by its name, or one of your own by its path; ``ConformanceError`` if it is none."""
    own = names("profiles")
    if f"profiles/{name}.json" in own:
        document = load(f"profiles/{name}.json")
    else:
        document = _read_profile(name, [each.removeprefix("profiles/").removesuffix(".json") for each in own])
    wanted = document.get("vectors") if isinstance(document, dict) else None
    if not isinstance(wanted, list) or not all(isinstance(each, str) for each in wanted):
        raise ConformanceError(f"profile {name}: it has no list `vectors` of vector ids (schemas/profile.json)")
    known = {each["id"] for kind in _KINDS for each in _vectors(kind)}
    if unknown := sorted(set(wanted) - known):
        raise ConformanceError(f"profile {name}: unknown vectors: {', '.join(unknown)}")
    return Profile(name if f"profiles/{name}.json" in own else Path(name).stem, frozenset(wanted))


def _read_profile(name: str, known: Sequence[str]) -> Any:
    try:
        return json.loads(Path(name).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConformanceError(
            f"profile {name}: neither a file nor a profile of the contract ({', '.join(known)})"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConformanceError(f"profile {name}: cannot be read: {error}") from error
