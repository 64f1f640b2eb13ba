"""The words and signs that the scoreboard's two pages share, so that they cannot disagree."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .scoreboard_data import Finding, Tally, Tested

RIGHT, CHOICE, SKIPPED = "✓", "◇", "○"
GRAVE = frozenset({"silent", "hang", "crash", "unable"})
WRONG = frozenset({"over_retry", "false_alarm"})
# As in the SDK, which these scripts can do without; a test holds them equal.
FIRST = ("outcome", "code", "codes_also_accepted", "status", "terminal")
AWKWARD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff]"
)

TITLE = "Conformance scoreboard"
ABOUT = (
    "How clients and servers of language models end their requests, held against the rules of this contract. "
    "Each implementation was run with its own defaults wherever a vector does not ask for something else."
)
WORST = "The verdict to look for first is `silent`: {means}"
UNITS = (
    "A vector is one scripted exchange and what has to come of it. "
    "Vectors about the same thing are an area; above each table stands what its areas are about."
)
OURS = (
    "This project's own client and shim are played like the others, but by rules that this project wrote: "
    "that they keep all of them is no surprise."
)
MADE = (
    "Every figure comes from the reports in `docs/conformance/`, and a test fails if these pages are not what the reports give. "
    "A report is written by `lastword conformance client` or `lastword conformance server` with `--report`; "
    "`make scoreboard` runs all of them, each implementation at a pinned version in its own environment. "
    "What is on the wire is scripted; requests and connections are counted by the other side."
)
COUNTED = (
    "A cell counts vectors: those that are right, of those that were played; then those of the worst verdict, "
    "how many have a lesser one, and how many are own choice. "
    "A vector is right if it is right however its bytes are cut; else its worst verdict counts. "
    "Skipped vectors need a capability that the implementation, or its adapter, does not declare; they do not count as played. "
    "A known failure, one that the implementation's baseline lists with a reason, counts like any other."
)
OWN_CHOICE = (
    "Where a rule is this contract's own choice and not plain truth, another view of it is marked as own choice "
    "and is not counted as a fault. "
    "A `finish_reason` of `abort` or `error` that is merely handed on counts as silent: it says that the answer broke, "
    "and a loop that does not look at it takes the answer for whole. "
    "An answer with an unknown one may be good, so handing that on is own choice."
)
MISTAKE = "If a row is unfair or out of date, the vector, the adapter and the report are all here to be corrected."
MEANS = {
    f"{RIGHT} right": "As the rules say.",
    f"{CHOICE} own choice": "Not as the rules say, where the rule is the contract's own choice: no fault.",
    f"{SKIPPED} skipped": "Not played: it needs something that was not declared.",
}


def shown(text: str) -> str:
    r"""Make text of others visible: control and direction characters as ``\x1b``, ``\u202e``."""
    return AWKWARD.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """The same, with every run of white space as one blank."""
    return shown(re.sub(r"\s+", " ", text))


def words(verdict: str) -> str:
    return verdict.replace("_", " ")


def sign(verdict: str) -> str:
    """Three signs for how grave a verdict is; the word beside it says which."""
    return "✗" if verdict in GRAVE else "▲" if verdict in WRONG else "△"


def named(tested: Tested) -> str:
    return shown(f"{tested.name} {tested.version}".strip())


def anchor(tested: Tested) -> str:
    return f"{tested.kind}-{re.sub(r'[^a-z0-9]+', '-', tested.key.lower())}"


def worst(tally: Tally, order: Mapping[str, str]) -> str | None:
    return next((verdict for verdict in order if tally.red[verdict]), None)


def cell(tally: Tally | None, order: Mapping[str, str]) -> tuple[str, str, tuple[str, ...]]:
    """Give the count, the worst verdict, and what else is not right: ``5/11``, ``✗ 2 silent``, ``3 lesser``, ``1 own choice``."""
    if tally is None:
        return "–", "no vector", ()
    if not tally.played:
        return "–", f"{SKIPPED} skipped", ()
    count, choice = f"{tally.right}/{tally.played}", f"{tally.choice} own choice"
    if verdict := worst(tally, order):
        lesser = tally.red.total() - tally.red[verdict]
        rest = (f"{lesser} lesser" if lesser else "", choice if tally.choice else "")
        return count, f"{sign(verdict)} {tally.red[verdict]} {words(verdict)}", tuple(filter(None, rest))
    return count, f"{CHOICE} {choice}" if tally.choice else f"{RIGHT} right", ()


def introduction(order: Mapping[str, str]) -> str:
    """What one has to know to read the first table; with code in backticks, as in all texts of this module."""
    means = order["silent"]
    return f"{WORST.format(means=means[0].lower() + means[1:])} {UNITS}"


def counts(tally: Tally, order: Mapping[str, str]) -> str:
    """Give everything that was played and is not right: ``3 silent, 1 hang; 2 own choice``."""
    red = ", ".join(f"{tally.red[verdict]} {words(verdict)}" for verdict in order if tally.red[verdict])
    return f"{red or 'no fault'}{f'; {tally.choice} own choice' if tally.choice else ''}"


def newer(tested: Tested) -> str:
    many = f"{tested.unplayed} vectors are" if tested.unplayed > 1 else "1 vector is"
    return f"{many} newer than its report." if tested.unplayed else ""


def tally_of(names: Mapping[str, int]) -> str:
    return ", ".join(f"{shown(name)} ({count})" for name, count in sorted(names.items()))


def in_words(values: Mapping[str, Any] | None) -> str:
    """Give what was said or expected in a line: ``incomplete stream_incomplete, text "Hel"``; empty members are left out."""
    if values is None:
        return "nothing"
    twice = {"texts"} if values.get("texts") == {"0": values.get("text")} else set()
    rest = [
        f"{name.replace('_', ' ')} {json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
        if name not in {*FIRST, *twice} and value not in (None, "", [], {}, False)
    ]
    return shown(", ".join(filter(None, [_brief(values), *rest])) or "nothing")


def in_brief(values: Mapping[str, Any] | None) -> str:
    """Give outcome and code, or status and terminal, and nothing else if there are any."""
    return shown(_brief(values or {})) or in_words(values)


def _brief(values: Mapping[str, Any]) -> str:
    lists = {name: value if isinstance(value, list) else [value] for name, value in values.items() if name in FIRST}
    lists["code"] = [*lists.get("code", ()), *lists.pop("codes_also_accepted", ())]
    parts = (" or ".join(str(each) for each in lists.get(name, ()) if each is not None) for name in FIRST)
    return " ".join(filter(None, parts))


def where(finding: Finding) -> str:
    """Give the segmentations a finding holds for, in words, if it is not just the default one."""
    if finding.cuts == ("event",):
        return ""
    how = {
        "event": "an event at a time",
        "whole": "in one piece",
        "1": "a byte at a time",
        "7": "seven bytes at a time",
    }
    return "bytes sent " + ", ".join(how.get(cut, f"cut by {shown(cut)}") for cut in finding.cuts)
