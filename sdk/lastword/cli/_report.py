"""``lastword report``: the account of the records that the shim left, and clients where they write some."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from lastword._command_error import CommandError
from lastword.cli._exit import Output, ends_well
from lastword.conformance.show._files import check_writable, write
from lastword.conformance.show._printable import printable
from lastword.report._account import Account
from lastword.report._numbers import count, span
from lastword.report._reading import STDIN, Reading, exists, named, older, same_history, size
from lastword.report._tables import NAMES, tables
from lastword.report._text import remarks, show

_AGO: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LONG: Final = 20_000_000  # bytes from which on a bar is shown

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RECORDS...",
        help="Files of records: as LASTWORD_RECORDS names them, set aside by rotation (.1, -20260101), compressed (.gz), in "
        "any order; - is standard input.",
        show_default=False,
    ),
]
Before = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RECORDS",
        help="Records to compare with, from before a change; quoted, it may be a pattern: 'before.jsonl*'. May be repeated.",
    ),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write it as one page with charts, which needs no network."),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", metavar="", help="Print the account as JSON instead, with everything that is said here."),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Only what was received from then on: 2026-01-01T18:00 (UTC, if it names no zone), or 90m ago, 2h, 1d.",
    ),
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only what was received before then.")]
ByModel = Annotated[bool, typer.Option("--by-model", metavar="", help="With a line for each model.")]


def report(
    files: Files = None,
    *,
    before: Before = None,
    html: Html = None,
    as_json: AsJson = False,
    since: Since = None,
    until: Until = None,
    by_model: ByModel = False,
) -> None:
    """Tell what came of recorded traffic: who was admitted, what completed, and what was generated for nobody.

    The records are those of the shim (LASTWORD_RECORDS). Records of clients, where these write some, are joined to them
    by request id and attempt; lastword's own SDK writes none yet. Files may be of any size.

    [bold]Examples[/bold]:

    lastword report records.jsonl*

    lastword report after.jsonl --before before.jsonl --html report.html

    zcat old.gz | lastword report - --since 2026-01-01T18:00 --until 2026-01-01T23:00

    [bold]Exit status[/bold]: 0 every line was read; 1 some were no records: they are named, and the account is of the others;
    2 there is no account; 130 interrupted; 141 whoever read the output has left.
    """
    with ends_well():
        if not files:
            raise CommandError("RECORDS is missing: lastword report records.jsonl")
        files, before = _expanded(files), _expanded(before or [])
        _check(files, before, html)
        period = _time(since, "--since"), _time(until, "--until")
        groups = [group for group in (before, files) if group]
        read = [_read(group, *period) for group in groups]
        accounts = [account for account, _ in read]
        _tell_what_was_not_read(groups, [reading for _, reading in read])
        empty = [group for group, account in zip(groups, accounts, strict=True) if account.is_empty]
        if empty:
            where = ", ".join(named(each) for each in empty[0])
            raise CommandError(f"no record of work in {where}{_hint(read, period)}")
        about = [_about(group, account, reading) for group, (account, reading) in zip(groups, read, strict=True)]
        if html is not None:
            from lastword.report._page import page

            shown = ["; ".join(map(printable, remarks(reading))) for _, reading in read]
            text = page(accounts, about, [each for each in shown if each])
            write(html, text)
            print(f"lastword: wrote {printable(str(html))} ({len(text.encode()) / 1024:,.0f} KiB)", file=sys.stderr)
        _print(groups, read, about, as_json=as_json, by_model=by_model)
    raise typer.Exit(1 if any(reading.broken or reading.unreadable for _, reading in read) else 0)


def _expanded(given: Sequence[str]) -> list[str]:
    """Patterns that no shell has filled in, as those of an option are not."""
    return [each for name in given for each in (sorted(glob.glob(name)) if not exists(name) else []) or [name]]


def _check(files: Sequence[str], before: Sequence[str], html: Path | None) -> None:
    given = [*files, *before]
    if missing := [path for path in given if not exists(path)]:
        raise CommandError(f"{missing[0]}: no such file")
    if mixed := [path for path in files if any(same_history(path, each) for each in before)]:
        raise CommandError(
            f"{mixed[0]} belongs to the files of --before: put their pattern in quotes, --before '{before[0]}*'"
        )
    if given.count(STDIN) > 1:
        raise CommandError("standard input can be read once only")
    if html is None:
        return
    if any(path != STDIN and os.path.realpath(path) == os.path.realpath(html) for path in given):
        raise CommandError(f"--html {html} would take the place of the records")
    try:
        check_writable(html)
    except OSError as error:
        raise CommandError(f"{html} cannot be written: {error.strerror}") from error


def _time(given: str | None, option: str) -> datetime | None:
    if given is None:
        return None
    ago = _AGO.fullmatch(given.strip().removesuffix(" ago"))
    try:
        if ago is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago["unit"]]: float(ago["number"])})
        found = datetime.fromisoformat(given.strip())
    except (ValueError, OverflowError):
        raise CommandError(f"{option} {given!r} is no time: 2026-01-01T18:00, 2026-01-01, or 90m, 2h, 1d ago") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _read(files: Sequence[str], since: datetime | None, until: datetime | None) -> tuple[Account, Reading]:
    account = Account()
    with _progress(files) as advance:
        reading = Reading(since, until, advance)
        for received, record in reading.records(files):
            account.take(record, received)
    return account, reading


@contextlib.contextmanager
def _progress(files: Sequence[str]) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, where there is much to read; pipes and CI see nothing."""
    total = size(files)
    if total is None or total < _LONG or not sys.stderr.isatty() or os.environ.get("CI"):
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Output(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total)
        yield lambda number: bar.advance(task, number)


def _tell_what_was_not_read(groups: Sequence[Sequence[str]], readings: Sequence[Reading]) -> None:
    for reading in readings:
        for line in remarks(reading):
            print(f"lastword: {printable(line)}", file=sys.stderr)
    for group in groups:
        if beside := older(group):
            names = ", ".join(map(printable, beside[:3])) + (", …" if len(beside) > 3 else "")
            print(f"lastword: note: older records are in {names}, which were not asked for", file=sys.stderr)


def _hint(read: Sequence[tuple[Account, Reading]], period: tuple[datetime | None, datetime | None]) -> str:
    left_out = sum(reading.left_out for _, reading in read)
    others = sum(account.main.others for account, _ in read)
    told = f" of that time; {count(left_out)} of other times" if left_out and any(period) else ""
    return f"{told}; {count(others)} of requests that asked for none" if others else told


def _about(files: Sequence[str], account: Account, reading: Reading) -> str:
    names = ", ".join(map(named, files[:3])) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    side, requests = account.main, account.pairs.requests(account.side)
    told = f"{count(side.count)} attempts of {count(requests.count)} requests, {span(side.first, side.last)}"
    left = f"; {count(reading.left_out)} of other times left out" if reading.left_out else ""
    return f"{names}: {told}{left}"


def _print(
    groups: Sequence[Sequence[str]],
    read: Sequence[tuple[Account, Reading]],
    about: Sequence[str],
    *,
    as_json: bool,
    by_model: bool,
) -> None:
    if as_json:
        from lastword.report._json import as_json as plain

        made = [plain(account, reading, group) for group, (account, reading) in zip(groups, read, strict=True)]
        typer.echo(json.dumps(made[0] if len(made) == 1 else dict(zip(NAMES, made, strict=True)), indent=2))
        return
    console = Output(highlight=False)
    lines = about if len(about) == 1 else [f"{name}: {line}" for name, line in zip(NAMES, about, strict=True)]
    show(console, tables([account for account, _ in read], by_model=by_model), lines)
