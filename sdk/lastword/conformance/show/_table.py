"""The result of a run for a person: what failed and why, then a line an area, then what it comes to and what to do.

The gravest failures come last, where a long page ends and is looked at first; only some of each verdict unless all are
wanted, and those that are the contract's own choice after the plain ones.

On a terminal lines are wrapped at its width and coloured; in a pipe each stays one line, for grep. Nothing depends on colour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lastword.conformance._results import CaseResult, Entry, Run, Verdict
from lastword.conformance.show._printable import printable

_STYLES: Final = {
    **dict.fromkeys((Verdict.SILENT, Verdict.HANG, Verdict.CRASH), "bold red"),
    **dict.fromkeys((Verdict.UNABLE, Verdict.OVER_RETRY, Verdict.FALSE_ALARM), "red"),
    **dict.fromkeys((Verdict.WRONG_CODE, Verdict.LEAK, Verdict.DETAIL), "yellow"),
    Verdict.RIGHT: "green",
    Verdict.SKIPPED: "cyan",
}
_FEW: Final = 5  # failures of a verdict that are told unless all are wanted
_COMMA: Final = Text(", ")
_STATE: Final = max(map(len, Verdict)) + 1  # columns of the state before a case's name


def show(run: Run, console: Console, *, verbose: bool = False, trace: bool = False, planned: int = 0) -> None:
    """Print a run on ``console``; ``verbose`` lists every case, ``trace`` what was on the wire of each that failed.

    ``planned``: the run was interrupted, and there would have been so many cases.
    """
    page = _Page(console)
    new = sorted(run.failures, key=_place)
    if verbose:
        for entry in sorted(run.entries, key=_place):
            if not entry.fails:
                _other(page, entry, run)
        page.say()
    told = [
        entry
        for _, group in groupby(new, key=lambda entry: entry.result.verdict)
        for entry in _failures(page, list(group), verbose=verbose, trace=trace)
    ]
    if any("@" in entry.result.case.name for entry in told):
        page.say("@1, @7: the same vector in writes of so many bytes; @whole: in one.")
    if new:
        page.say()
    _areas(page, run)
    page.say()
    _summary(page, run, planned)


class _Page:
    """Lines on a console: wrapped under their beginning on a terminal, left alone in a pipe."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, text: Text | str = "", *, indent: int = 0) -> None:
        shown = text if isinstance(text, Text) else Text(self._fit(text))
        if self._console.is_terminal and shown:
            self._console.print(Padding(shown, (0, 0, 0, indent), expand=False))
        else:
            self._console.print(Text(" " * indent) + shown, soft_wrap=True)

    def _fit(self, text: str) -> str:
        # What others said must not look like a line of the page; on a terminal it is set in as a whole.
        shown = printable(text.rstrip("\n"))
        return shown if self._console.is_terminal else shown.replace("\n", " ⏎ ")

    def row(self, head: Text, *parts: Text) -> None:
        """Print a head, and beside it parts with commas between; lines break between parts if they can."""
        if not self._console.is_terminal:
            self.say(head + _COMMA.join(parts))
            return
        grid = Table.grid()
        grid.add_column(width=head.cell_len, no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(head, Text("\n").join(_packed(parts, self._console.width - head.cell_len)))
        self._console.print(grid)


def _packed(parts: Sequence[Text], width: int) -> Iterator[Text]:
    line = Text()
    for number, part in enumerate(parts, 1):
        piece = Text.assemble(part, "" if number == len(parts) else ",")
        if line and line.cell_len + 1 + piece.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, " " if line else "", piece)
    yield line


def _place(entry: Entry) -> tuple[int, bool, str, tuple[str, ...], str]:
    result = entry.result
    return -result.verdict.severity, result.is_own_choice, result.case.id, result.reasons, result.case.name


def _same(entry: Entry) -> tuple[int, bool, str, tuple[str, ...]]:
    """What a vector's failures have in common that are told once: most fail alike however the bytes are cut."""
    return _place(entry)[:4]


def _failures(page: _Page, entries: list[Entry], *, verbose: bool, trace: bool) -> list[Entry]:
    """Tell those of one verdict, or the first of them; gives those that were told."""
    alike = [list(group) for _, group in groupby(entries, key=_place if verbose else _same)]
    few = None if verbose or trace else _FEW
    for group in alike[:few]:
        _failure(page, group, trace=trace)
    told = [entry for group in alike[:few] for entry in group]
    if more := len(entries) - len(told):
        page.row(_state(entries[0].result.verdict), Text(f"… {more} more, which -v shows"))
    return told


def _failure(page: _Page, entries: Sequence[Entry], *, trace: bool) -> None:
    result = entries[0].result
    others = [f"@{entry.result.case.segmentation}" for entry in entries[1:]]
    alike = f"; {', '.join(others)} {'fail' if len(others) > 1 else 'fails'} alike" if others else ""
    _named(page, result, alike)
    for reason in result.reasons:
        page.say(reason, indent=4)
    if result.is_own_choice:
        page.say(f"The contract's own choice: {result.case.choice}", indent=4)
    for each in entries if trace else ():
        if len(entries) > 1:
            page.say(f"{each.result.case.name}:", indent=4)
        for line in each.result.trace or each.result.wire:
            page.say(line, indent=6)


def _named(page: _Page, result: CaseResult, note: str = "") -> None:
    took = f" ({result.seconds * 1000:.0f} ms{note})" if result.seconds else f" ({note[2:]})" if note else ""
    name = Text(printable(result.case.name)) + Text(took, style="dim")
    page.row(_state(result.verdict), name)


def _state(verdict: Verdict) -> Text:
    return Text(f"{_words(verdict):<{_STATE}}", style=_STYLES[verdict])


def _other(page: _Page, entry: Entry, run: Run) -> None:
    result = entry.result
    if result.verdict is Verdict.SKIPPED:
        note = f", {'; '.join(result.reasons)}"
    elif entry.known is not None:
        note = f", known: {entry.known}"
    else:
        note = "" if entry.required else f", not in profile {run.profile}"
    _named(page, result, printable(note))


def _areas(page: _Page, run: Run) -> None:
    scored = [entry for entry in run.entries if entry.required]
    areas = {area: list(group) for area, group in groupby(sorted(scored, key=_area), key=_area)}
    wide = max(map(len, areas), default=0)
    for area, entries in areas.items():
        verdicts = Counter(entry.result.verdict for entry in entries)
        played = len(entries) - verdicts[Verdict.SKIPPED]
        tally = f"{verdicts[Verdict.RIGHT]}/{played}" if played else "–"
        style = "green" if verdicts[Verdict.RIGHT] == played else ""
        parts = [Text("right", style=style) if played else Text(""), *_counts(verdicts), *_of_these(entries)]
        head = Text(f"{printable(area):<{wide}}  {tally:>7} ")
        page.row(head, *(part for part in parts if part))


def _area(entry: Entry) -> str:
    return entry.result.case.area


def _counts(verdicts: Counter[Verdict]) -> Iterator[Text]:
    for verdict in Verdict:
        if verdict is not Verdict.RIGHT and verdicts[verdict]:
            yield Text(f"{verdicts[verdict]} {_words(verdict)}", style=_STYLES[verdict])


def _of_these(entries: Sequence[Entry]) -> Iterator[Text]:
    if choice := _own_choices(entries):
        yield Text(f"{choice} of these own choice", style="dim")
    if known := sum(entry.known is not None for entry in entries):
        yield Text(f"{known} of these known", style="dim")


def _own_choices(entries: Iterable[Entry]) -> int:
    return sum(entry.result.is_own_choice for entry in entries)


def _summary(page: _Page, run: Run, planned: int) -> None:
    made = run.implementation
    scored = [entry for entry in run.entries if entry.required]
    verdicts = Counter(entry.result.verdict for entry in scored)
    counts = [Text(f"{verdicts[Verdict.RIGHT]} right", style=_STYLES[Verdict.RIGHT]), *_counts(verdicts)]
    profile = f", profile {run.profile}" if run.profile else ""
    page.say(f"{' '.join(filter(None, (made.name, made.version)))}, contract {run.contract}{profile}")
    page.row(Text(f"{_many(len(scored), 'case')}: "), *counts, *_of_these(scored))
    _left_out(page, run, len(scored))
    if planned:
        after = f"Interrupted after {len(run.entries)} of {_many(planned, 'case')}"
        page.say(Text(f"{after}; no report was written.", style="bold red"))
    else:
        _next(page, run, known=sum(entry.known is not None for entry in scored))


def _left_out(page: _Page, run: Run, scored: int) -> None:
    """What was not held against the implementation, each thing once: nothing is passed over in silence."""
    results = [entry.result for entry in run.entries if entry.required]
    if lacking := run.lacking:
        page.say(f"Skipped, not declared: {_tally(lacking)}")
    if unreported := Counter(name for result in results for name in result.unreported):
        page.say(f"Not compared, not reported: {_tally(unreported)}")
    if extra := len(run.entries) - scored:
        page.say(f"Played and not counted, not in profile {run.profile}: {_many(extra, 'case')}")


def _next(page: _Page, run: Run, *, known: int) -> None:
    new, choice = len(run.failures), _own_choices(run.failures)
    for line in run.stale:
        page.row(Text(f"{'stale':<{_STATE}}", style="yellow"), Text(printable(line)))
    if new:
        views = f", {choice} of {_it(new)} by the contract's own choice" if choice else ""
        page.say(
            Text(
                f"{_many(new, 'new failure')}{views}: mend {_it(new)} or list {_it(new)} in a baseline.",
                style="bold red",
            )
        )
    if stale := len(run.stale):
        are = "is" if stale == 1 else "are"
        page.say(Text(f"{_many(stale, 'baseline line')} {are} stale: delete {_it(stale)}.", style="bold red"))
    if known:
        page.say(f"{_many(known, 'known failure')}, as the baseline says.")
    elif not run.played:
        page.say(Text("Nothing was played: every case was skipped.", style="bold red"))
    elif not new and not stale:
        page.say(Text("All right.", style="bold green"))


def _tally(counted: Mapping[str, int]) -> str:
    return printable(", ".join(f"{name} ({count})" for name, count in sorted(counted.items())))


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _it(count: int) -> str:
    return "it" if count == 1 else "them"


def _words(verdict: Verdict) -> str:
    return verdict.replace("_", " ")
