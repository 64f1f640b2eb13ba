"""The result of a run for a person: what failed and why, then a line an area, then what it comes to and what to do.

On a terminal lines are wrapped at its width and coloured; in a pipe each stays one line, for grep. Nothing depends on colour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lastword.conformance._results import CaseResult, Entry, Run, Verdict
from lastword.conformance._run import failures
from lastword.conformance.show._printable import printable

_STYLES: Final = {
    **dict.fromkeys((Verdict.SILENT, Verdict.HANG, Verdict.CRASH), "bold red"),
    **dict.fromkeys((Verdict.UNABLE, Verdict.OVER_RETRY, Verdict.FALSE_ALARM), "red"),
    **dict.fromkeys((Verdict.WRONG_CODE, Verdict.LEAK, Verdict.DETAIL), "yellow"),
    Verdict.RIGHT: "green",
    Verdict.SKIPPED: "cyan",
}
_ORDER: Final = {verdict: place for place, verdict in enumerate(Verdict)}
_COMMA: Final = Text(", ")
_STATE: Final = max(map(len, Verdict)) + 1  # columns of the state before a case's name


def show(run: Run, console: Console, *, verbose: bool = False, trace: bool = False) -> None:
    """Print a run on ``console``; ``verbose`` lists every case, ``trace`` what was on the wire of each that failed."""
    page = _Page(console)
    new = sorted(failures(run), key=_severity)
    for _, group in groupby(new, key=_severity if verbose else _same):
        _failure(page, list(group), trace=trace)
    if verbose:
        told = {entry.result.case.name for entry in new}
        page.say()
        for entry in sorted(run.entries, key=_severity):
            if entry.result.case.name not in told:
                _other(page, entry, run)
    if new or verbose:
        page.say()
    _areas(page, run)
    page.say()
    _summary(page, run, len(new))


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


def _severity(entry: Entry) -> tuple[int, str, tuple[str, ...], str]:
    result = entry.result
    return _ORDER[result.verdict], result.case.id, result.reasons, result.case.name


def _same(entry: Entry) -> tuple[int, str, tuple[str, ...]]:
    """What a vector's failures have in common that are told once: most fail alike however the bytes are cut."""
    return _severity(entry)[:3]


def _failure(page: _Page, entries: Sequence[Entry], *, trace: bool) -> None:
    result = entries[0].result
    others = [f"@{entry.result.case.segmentation}" for entry in entries[1:]]
    _named(page, result, f", {', '.join(others)} too" if others else "")
    for reason in result.reasons:
        page.say(reason, indent=4)
    if result.case.choice:
        page.say(f"The contract's own choice: {result.case.choice}", indent=4)
    for each in entries if trace else ():
        if len(entries) > 1:
            page.say(f"{each.result.case.name}:", indent=4)
        for line in each.result.trace or each.result.wire:
            page.say(line, indent=6)


def _named(page: _Page, result: CaseResult, note: str = "") -> None:
    took = f" ({result.seconds * 1000:.0f} ms{note})" if result.seconds else f" ({note[2:]})" if note else ""
    name = Text(printable(result.case.name)) + Text(took, style="dim")
    page.row(Text(f"{_words(result.verdict):<{_STATE}}", style=_STYLES[result.verdict]), name)


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
        parts = [Text("right", style=style) if played else Text(""), *_counts(verdicts), *_known(entries)]
        head = Text(f"{printable(area):<{wide}}  {tally:>7} ")
        page.row(head, *(part for part in parts if part))


def _area(entry: Entry) -> str:
    return entry.result.case.area


def _counts(verdicts: Counter[Verdict]) -> Iterator[Text]:
    for verdict in Verdict:
        if verdict is not Verdict.RIGHT and verdicts[verdict]:
            yield Text(f"{verdicts[verdict]} {_words(verdict)}", style=_STYLES[verdict])


def _known(entries: Iterable[Entry]) -> Iterator[Text]:
    known = sum(entry.known is not None for entry in entries)
    if known:
        yield Text(f"{known} of these known", style="dim")


def _summary(page: _Page, run: Run, new: int) -> None:
    made = run.implementation
    scored = [entry for entry in run.entries if entry.required]
    verdicts = Counter(entry.result.verdict for entry in scored)
    counts = [Text(f"{verdicts[Verdict.RIGHT]} right", style=_STYLES[Verdict.RIGHT]), *_counts(verdicts)]
    profile = f", profile {run.profile}" if run.profile else ""
    page.say(f"{' '.join(filter(None, (made.name, made.version)))}, contract {run.contract}{profile}")
    page.row(Text(f"{_many(len(scored), 'case')}: "), *counts)
    _left_out(page, run, len(scored))
    known = [entry for entry in scored if entry.known is not None]
    _next(page, run, new=new, known=len(known))


def _left_out(page: _Page, run: Run, scored: int) -> None:
    """What was not held against the implementation, each thing once: nothing is passed over in silence."""
    results = [entry.result for entry in run.entries if entry.required]
    skipped = [result for result in results if result.verdict is Verdict.SKIPPED]
    lacking = Counter(need for result in skipped for need in result.case.needs - run.implementation.capabilities)
    if lacking:
        page.say(f"Skipped, not declared: {_tally(lacking)}")
    if unreported := Counter(name for result in results for name in result.unreported):
        page.say(f"Not compared, not reported: {_tally(unreported)}")
    if extra := len(run.entries) - scored:
        page.say(f"Played and not counted, not in profile {run.profile}: {_many(extra, 'case')}")


def _next(page: _Page, run: Run, *, new: int, known: int) -> None:
    for line in run.stale:
        page.row(Text(f"{'stale':<{_STATE}}", style="yellow"), Text(printable(line)))
    if new:
        page.say(
            Text(f"{_many(new, 'new failure')}: mend {_it(new)} or list {_it(new)} in a baseline.", style="bold red")
        )
    if stale := len(run.stale):
        are = "is" if stale == 1 else "are"
        page.say(Text(f"{_many(stale, 'baseline line')} {are} stale: delete {_it(stale)}.", style="bold red"))
    if known:
        page.say(f"{_many(known, 'known failure')}, as the baseline says.")
    elif not new and not stale:
        played = any(entry.result.verdict is Verdict.RIGHT for entry in run.entries)
        page.say(Text("All right." if played else "Nothing was played: every case was skipped.", style="bold green"))


def _tally(counted: Counter[str]) -> str:
    return printable(", ".join(f"{name} ({count})" for name, count in sorted(counted.items())))


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _it(count: int) -> str:
    return "it" if count == 1 else "them"


def _words(verdict: Verdict) -> str:
    return verdict.replace("_", " ")
