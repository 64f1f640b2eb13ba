"""The report as one page with charts, which needs no network and no script.

It is built as a tree, so that every text of a record is escaped by whoever writes the tree out, and nowhere by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from string import Template
from xml.etree.ElementTree import Element, tostring

from lastword.report import _numbers as say
from lastword.report._account import Account
from lastword.report._charts import patterns
from lastword.report._figures import figures
from lastword.report._tables import NAMES, Table, tables, useful_per_second
from lastword.report._tags import digest, scroll, tag

TITLE = "What came of the requests"


def page(accounts: Sequence[Account], about: Sequence[str], remarks: Sequence[str] = ()) -> str:
    """The page of one account, or of two: before and after.

    ``about`` says of each what was read, ``remarks`` what was not.
    """
    files = resources.files("lastword.report").joinpath("page")
    style = files.joinpath("style.css").read_text(encoding="utf-8")
    body = [_header(accounts, about, remarks), _main(accounts)]
    return Template(files.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=TITLE,
        style=style,
        style_hash=digest(style),
        body="\n".join(tostring(each, encoding="unicode", method="html") for each in body),
    )


def _header(accounts: Sequence[Account], about: Sequence[str], remarks: Sequence[str]) -> Element:
    names = [f"{name}: " for name in NAMES] if len(accounts) > 1 else [""]
    return tag(
        "header",
        tag("h1", TITLE),
        *(tag("p", name, line) for name, line in zip(names, about, strict=True)),
        *(tag("p", line, class_="remark") for line in remarks),
        end="\n",
    )


def _main(accounts: Sequence[Account]) -> Element:
    by_model = any(len(account.main.models) > 1 for account in accounts)
    first, *others = tables(accounts, by_model=by_model)
    return tag(
        "main",
        patterns(),
        _figures_in_short(accounts),
        _table(first),
        tag("section", tag("h2", "Over time, and how long"), *figures(accounts), end="\n"),
        *(_table(table) for table in others),
        id="main",
    )


def _figures_in_short(accounts: Sequence[Account]) -> Element:
    """What a reader looks for first."""
    sides = [account.main for account in accounts]
    tallies = [side.tally for side in sides]
    known = [account.pairs.requests(account.side) for account in accounts]
    cards = [
        (
            "requests completed",
            "by any of their attempts",
            [f"{say.count(each.completed)} of {say.count(each.count)}" for each in known],
        ),
        (
            "effective completion rate",
            "completed of admitted attempts",
            [say.percent(tally.completion_rate) for tally in tallies],
        ),
        ("wasted tokens", "made for clients that left", [say.tokens(tally.made("wasted")) for tally in tallies]),
        ("useful tokens per second", "of completed answers", [useful_per_second(side) for side in sides]),
    ]
    shown = [
        tag("div", tag("dt", name, tag("small", means)), *_values(values), class_="card", end="\n")
        for name, means, values in cards
    ]
    return tag("dl", *shown, class_="cards", end="\n")


def _values(values: Sequence[str]) -> list[Element]:
    if len(values) == 1:
        return [tag("dd", values[0])]
    before, after = values
    return [tag("dd", tag("small", "before "), before, class_="before"), tag("dd", tag("small", "after "), after)]


def _table(table: Table) -> Element:
    head = [
        tag("th", name, scope="col", class_=None if index < table.words else "number") if name or index else tag("td")
        for index, name in enumerate(table.head)
    ]
    rows = []
    for row in table.rows:
        cells = [
            tag("td", cell.replace(" %", "\u00a0%"), class_="word" if index < table.words else "number")
            for index, cell in enumerate(row.cells[1:], 1)
        ]
        name = tag("th", row.cells[0], scope="row", class_=f"level{row.level}")
        rows.append(tag("tr", name, *cells, class_="grave" if row.grave else None, end="\n"))
    made = tag("table", tag("thead", tag("tr", *head)) if any(table.head) else None, tag("tbody", *rows))
    return tag("section", tag("h2", table.title), tag("p", table.note), scroll(made, table.title), end="\n")
