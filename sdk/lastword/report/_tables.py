"""What a report shows, as tables of text: the same for a terminal and for a page.

With two accounts, before and after, each table has a column or a row for each, and where it means something the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lastword._codes import CODES
from lastword.report import _numbers as say
from lastword.report._account import TOKENS, Account, Side, Tally
from lastword.report._pairs import MOST_ATTEMPTS

NAMES: Final = ("before", "after")
_ASK: Final = "ask for stream_options.include_usage."
NOBODY_COUNTED: Final = f"Nobody counted the tokens: {_ASK}"
_Part = Callable[[Tally], float | None]


@dataclass(frozen=True, slots=True)
class Row:
    """A row; ``level`` tells how far its name is set in, ``grave`` that it is what a reader looks for."""

    cells: tuple[str, ...]
    level: int = 0
    grave: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table: a title, a sentence, the heads of its columns, and rows.  ``words`` columns hold words, the rest numbers."""

    title: str
    note: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    words: int = 1


def tables(accounts: Sequence[Account], *, by_model: bool) -> Iterator[Table]:
    """The tables of one account, or of two: before and after."""
    yield _account(accounts)
    yield _times(accounts)
    if any(account.main.tally.codes for account in accounts):
        yield _codes(accounts)
    yield _requests(accounts)
    if by_model:
        yield _models(accounts)
    if any(account.pairs.both_sides for account in accounts):
        yield _pairs(accounts)


def _account(accounts: Sequence[Account]) -> Table:
    sides = [account.main for account in accounts]
    seen = "the server" if all(account.side == "server" for account in accounts) else "the client"
    note = (
        f"Attempts as {seen} saw them. Admitted is what was not rejected; shares below it are of the admitted. "
        "Effective completion rate: completed of admitted."
    )
    for which, account in _named(accounts):
        if told := _uncounted(account.main.tally):
            note += f" {which[0]}: {told}" if which else f" {told}"
    head = ("", "", "share") if len(accounts) == 1 else ("", *NAMES, "change")
    return Table("The account", note, head, tuple(_account_rows(sides)))


def _account_rows(sides: Sequence[Side]) -> Iterator[Row]:
    tallies = [side.tally for side in sides]

    def counted(name: str, of: _Part, whole: _Part, level: int = 1, *, grave: bool = False) -> Row:
        parts, wholes = [of(tally) for tally in tallies], [whole(tally) for tally in tallies]
        shares = [say.share(part, each) for part, each in zip(parts, wholes, strict=True)]
        if len(parts) == 1:
            return Row((name, say.tokens(parts[0]), shares[0]), level, grave)
        cells = [
            f"{say.tokens(part)} ({each})" if each else say.tokens(part)
            for part, each in zip(parts, shares, strict=True)
        ]
        return Row((name, *cells, say.change(*parts)), level, grave)

    def told(name: str, texts: Sequence[str], change: str, level: int = 0, *, grave: bool = False) -> Row:
        return Row((name, *texts, "" if len(texts) == 1 else change), level, grave)

    def admitted(tally: Tally) -> float:
        return tally.admitted

    yield counted("received", lambda tally: tally.received, _none, 0)
    yield counted("rejected", lambda tally: tally.ends["rejected"], lambda tally: tally.received)
    yield counted("admitted", lambda tally: tally.admitted, lambda tally: tally.received, 0)
    yield counted("started", lambda tally: tally.started, admitted)
    yield counted("completed", lambda tally: tally.completed, admitted)
    yield counted("disconnected while queued", lambda tally: tally.left_queued, admitted)
    yield counted("disconnected while generating", lambda tally: tally.left_generating, admitted)
    for end in ("cancelled", "failed", "incomplete"):
        if any(tally.ends[end] for tally in tallies):
            yield counted(end, lambda tally, end=end: tally.ends[end], admitted)  # type: ignore[misc]
    rates = [tally.completion_rate for tally in tallies]
    yield told("effective completion rate", [say.percent(each) for each in rates], say.points(*_two(rates)), grave=True)
    yield counted("tokens generated", _made, _none, 0)
    for word, what in (
        ("useful: of completed answers", "useful"),
        ("wasted: for clients that left", "wasted"),
        ("lost: of answers that ended otherwise", "lost"),
    ):
        yield counted(word, lambda tally, what=what: tally.made(what), _made, grave=what == "wasted")  # type: ignore[misc]
    if any(tally.uncounted["wasted"] for tally in tallies):
        yield counted("wasted answers whose tokens nobody counted", lambda tally: tally.uncounted["wasted"], _none)
    times = [tally.wasted_seconds for tally in tallies]
    yield told(
        "time generated for clients that left", [say.seconds(each) for each in times], say.change(*_two(times)), 1
    )
    paces = [side.useful_per_second for side in sides]
    yield told("useful tokens per second", list(map(useful_per_second, sides)), say.change(*_two(paces)), grave=True)
    others = [side.others for side in sides]
    if any(others):
        change = say.change(*_two(others))
        yield told("besides, and not counted above: asked for no work", [say.count(each) for each in others], change)


def useful_per_second(side: Side) -> str:
    """As a reader sees it."""
    return say.tokens(None) if side.tally.made("useful") is None else say.rate(side.useful_per_second)


def _uncounted(tally: Tally) -> str:
    """A sentence on answers without a token count; nothing where each has one."""
    lacking = tally.uncounted["useful"]
    if not lacking:
        return "" if tally.made(*TOKENS) is not None else NOBODY_COUNTED
    return f"{say.count(lacking)} of {say.count(tally.completed)} completed answers have no token count: {_ASK}"


def _made(tally: Tally) -> int | None:
    return tally.made(*TOKENS)


def _none(_: Tally) -> float:
    return 0


def _two(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    return (values[0], values[-1]) if len(values) == 2 else (None, None)


def _times(accounts: Sequence[Account]) -> Table:
    note = "Queue and first token of all attempts that got so far; generation and total of those that completed."
    names = [
        ("queue", "queue"),
        ("to the first token", "first_token"),
        ("generation", "generation"),
        ("total", "total"),
    ]
    rows = []
    for name, key in names:
        for which, account in _named(accounts):
            sketch = getattr(account.main.tally, key)
            quantiles = [say.milliseconds(sketch.quantile(each)) for each in (0.5, 0.9, 0.99)]
            largest = say.milliseconds(sketch.largest if sketch.count else None)
            rows.append(Row((name, *which, say.count(sketch.count), *quantiles, largest)))
    head = ("", *_which(accounts), "attempts", "half within", "90 % within", "99 % within", "longest")
    return Table("Times", note, head, tuple(rows), words=len(_which(accounts)) + 1)


def _codes(accounts: Sequence[Account]) -> Table:
    tallies = [account.main.tally for account in accounts]
    totals = {code: max(tally.codes[code] for tally in tallies) for tally in tallies for code in tally.codes}
    rows = []
    for code in sorted(totals, key=lambda code: (-totals[code], code)):
        numbers = [tally.codes[code] for tally in tallies]
        cells = [say.count(each) for each in numbers]
        more = say.share(numbers[0], tallies[0].received) if len(numbers) == 1 else say.change(*_two(numbers))
        known = CODES.get(code)
        rows.append(Row((code, known.category.value if known else "unknown", *cells, more)))
    last = ("attempts", "share") if len(accounts) == 1 else (*NAMES, "change")
    note = "What callers were told: fixable by themselves, retryable as it is, or cancelled by them."
    return Table("By code", note, ("code", "category", *last), tuple(rows), words=2)


def _requests(accounts: Sequence[Account]) -> Table:
    known = [account.pairs.requests(account.side) for account in accounts]
    rows = []
    for name, key, level in (
        ("requests", "count", 0),
        ("completed in the end", "completed", 1),
        ("tried more than once", "retried", 1),
        ("completed by a retry", "saved", 1),
    ):
        numbers = [getattr(each, key) for each in known]
        cells = [say.count(number) for number in numbers]
        more = say.share(numbers[0], known[0].count) if len(known) == 1 else say.change(*_two(numbers))
        rows.append(Row((name, *cells, more if level or len(known) > 1 else ""), level))
    most = max((max(each.by_attempts, default=1) for each in known), default=1)
    for attempts in range(1, most + 1) if most > 1 else ():
        numbers = [each.by_attempts[attempts] for each in known]
        more = say.share(numbers[0], known[0].count) if len(known) == 1 else say.change(*_two(numbers))
        word = "1 attempt" if attempts == 1 else f"{attempts}{'+' if attempts == MOST_ATTEMPTS else ''} attempts"
        rows.append(Row((word, *(say.count(number) for number in numbers), more), 1))
    head = ("", "", "share") if len(accounts) == 1 else ("", *NAMES, "change")
    note = "Attempts of one request share its id; a client that gives each attempt a new one looks like many."
    return Table("By request", note, head, tuple(rows))


def _models(accounts: Sequence[Account]) -> Table:
    largest: dict[str, int] = {}
    for account in accounts:
        for name, tally in account.main.models.items():
            largest[name] = max(largest.get(name, 0), tally.received)
    rows = []
    for name in sorted(largest, key=lambda name: (-largest[name], name)):
        for which, account in _named(accounts):
            tally = account.main.models.get(name, Tally())
            gone = tally.left_queued + tally.left_generating
            numbers = (tally.received, tally.ends["rejected"], tally.completed, gone)
            tokens = [say.tokens(tally.made(what), "–") for what in TOKENS]
            cells = [*map(say.count, numbers), say.percent(tally.completion_rate), *tokens]
            rows.append(Row((name, *which, *cells)))
    head = (
        *("model", *_which(accounts), "all", "rejected", "done", "left", "rate"),
        *("useful", "wasted", "lost"),
    )
    note = (
        "All: received. Done: completed. Left: disconnected. Rate: done of admitted. Then tokens, – where nobody counted. "
        "A model is named by the caller: what is rejected may name one that is not there."
    )
    return Table("By model", note, head, tuple(rows), words=len(_which(accounts)) + 1)


def _pairs(accounts: Sequence[Account]) -> Table:
    rows = []
    for which, account in _named(accounts):
        joined = account.pairs.joined
        for client, server in sorted(joined, key=lambda pair: (-joined[pair], pair)):
            agree = "yes" if client == server else "no"
            rows.append(Row((*which, client, server, agree, say.count(joined[client, server]))))
    head = (*_which(accounts), "the client says", "the server says", "the same", "attempts")
    note = (
        "Attempts of which both sides left a record. Where a server's completed is no client's, something between them cut "
        "it or the client had given up."
    )
    return Table("Both sides", note, head, tuple(rows), words=len(head) - 1)


def _named(accounts: Sequence[Account]) -> list[tuple[tuple[str, ...], Account]]:
    names = [(name,) for name in NAMES] if len(accounts) > 1 else [()]
    return list(zip(names, accounts, strict=True))


def _which(accounts: Sequence[Account]) -> tuple[str, ...]:
    return ("",) if len(accounts) > 1 else ()
