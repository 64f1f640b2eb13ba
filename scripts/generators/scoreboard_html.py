"""docs/conformance.html: the scoreboard as one page that needs no network.

The page is built as a tree, so that every text of a report is escaped by whoever writes the tree out, and nowhere by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from string import Template
from xml.etree.ElementTree import Element, tostring

from . import scoreboard_data as data
from . import scoreboard_words as say
from .scoreboard_data import Board, Finding, Tally, Tested
from .scoreboard_tags import Child, digest, prose, scroll, tag

HEADS = {"client": "Clients", "server": "Servers"}
PAGE = Path(__file__).with_name("scoreboard_page")
_BY_SIGN = {"✗": "grave", "▲": "wrong", "△": "small", say.RIGHT: "right", say.CHOICE: "choice"}


def render(board: Board) -> str:
    """The whole page."""
    script, style = ((PAGE / name).read_text(encoding="utf-8") for name in ("script.js", "style.css"))
    body = [_header(board), _main(board)]
    return Template((PAGE / "page.html").read_text(encoding="utf-8")).substitute(
        title=say.TITLE,
        style=style,
        style_hash=digest(style),
        script=script,
        script_hash=digest(script),
        body="\n".join(tostring(each, encoding="unicode", method="html") for each in body),
    )


def _header(board: Board) -> Element:
    about = f"{say.ABOUT} Contract {board.contract}."
    links: list[Child] = [tag("a", "Legend", href="#legend"), ", ", tag("a", "what went wrong", href="#details"), ", "]
    return tag(
        "header",
        tag("h1", say.TITLE),
        tag("p", about),
        tag("p", *prose(say.introduction(board.verdicts))),
        tag("p", say.OURS),
        tag("p", *links, tag("a", "how this is made", href="#made")),
    )


def _main(board: Board) -> Element:
    kinds = [_kind(board, kind, head) for kind, head in HEADS.items() if board.of(kind)]
    details = [_details(board, each) for each in board.tested]
    return tag(
        "main",
        _filter(board),
        *kinds,
        tag("section", tag("h2", "What went wrong", id="details"), *details, aria_labelledby="details", end="\n"),
        _legend(board),
        _choices(board),
        tag("section", tag("h2", "How this is made", id="made"), tag("p", *prose(say.MADE)), tag("p", say.MISTAKE)),
        id="main",
    )


def _filter(board: Board) -> Element:
    found = [("choice" if each.choice else each.verdict) for tested in board.tested for each in tested.findings]
    options = [
        tag(
            "option",
            f"{sign} {word} ({found.count(name)})",
            value=name,
            data_word=f"{sign} {word}",
            data_class=_BY_SIGN[sign],
        )
        for name, sign, word in _filters(board)
        if name in found
    ]
    return tag(
        "div",
        tag("label", "Show ", tag("select", tag("option", "every verdict", value=""), *options, id="verdict")),
        tag("span", id="count", role="status"),
        class_="toolbar",
        id="filter",
        hidden="",
        end="\n",
    )


def _filters(board: Board) -> Iterator[tuple[str, str, str]]:
    yield from ((name, say.sign(name), say.words(name)) for name in board.verdicts if name not in data.FINE)
    yield "choice", say.CHOICE, "own choice"


def _kind(board: Board, kind: str, head: str) -> Element:
    tested = board.of(kind)
    label = f"{head} by area"
    told = f"{label}: vectors that are right, of those that were played; the worst verdict; what else is not right. "
    corner = tag("th", "Area", scope="col")
    names = [
        tag("th", tag("a", each.name, href=f"#{say.anchor(each)}"), _version(each), scope="col") for each in tested
    ]
    rows = [_row("all areas", [each.total for each in tested], board, tested, class_="total")]
    rows += [_row(area, [each.areas.get(area) for each in tested], board, tested) for area in board.areas(kind)]
    matrix = tag(
        "table",
        tag("caption", tag("span", told, tag("b", "More columns to the right →", class_="more"))),
        tag("thead", tag("tr", corner, *names), end="\n"),
        tag("tbody", *rows),
        class_="matrix",
    )
    return tag(
        "section",
        tag("h2", head, id=kind),
        _areas(board, kind),
        scroll(matrix, label),
        tag("h3", f"{head} in short"),
        scroll(_summary(board, tested), f"{head} in short", low=True),
        aria_labelledby=kind,
        end="\n",
    )


def _areas(board: Board, kind: str) -> Element:
    rows = [
        tag("li", *prose(", ".join(f"`{name}`" for name in names)), f": {about}", end="\n")
        for names, about in board.about[kind]
    ]
    return tag(
        "details", tag("summary", "What the areas are about"), tag("ul", *rows), class_="areas", open="", end="\n"
    )


def _version(tested: Tested) -> Element:
    return tag("small", ", ".join(filter(None, (tested.version, tested.language))))


def _row(
    area: str, tallies: Iterable[Tally | None], board: Board, tested: list[Tested], *, class_: str | None = None
) -> Element:
    cells = [
        _cell(tally, board, None if class_ else f"#{say.anchor(each)}--{area}", f"{each.name}, {area}")
        for tally, each in zip(tallies, tested, strict=True)
    ]
    return tag("tr", tag("th", area, scope="row"), *cells, class_=class_, end="\n")


def _cell(tally: Tally | None, board: Board, target: str | None, label: str) -> Element:
    count, word, rest = say.cell(tally, board.verdicts)
    parts = [
        tag("span", count, class_="count", data_all=count),
        tag("span", word, class_="word", data_all=word),
        *(tag("small", each) for each in rest),
        tag("small", f"{tally.skipped} skipped") if tally and tally.played and tally.skipped else None,
    ]
    red = {**tally.red, "choice": tally.choice} if tally else {}
    faults = " ".join(f"{name}:{number}" for name, number in red.items() if number)
    content = (
        tag("a", *parts, href=target, aria_label=f"{label}: {count} {', '.join((word, *rest))}, details")
        if faults and target
        else tag("span", *parts, class_="box")
    )
    look = _BY_SIGN.get(word[0], "none")
    return tag("td", content, class_=look, data_class=look, data_red=faults or None)


def _summary(board: Board, tested: list[Tested]) -> Element:
    head = ("Name", "Right", "Faults", "Skipped", "Not compared", "How it was tested")
    return tag(
        "table",
        tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head))),
        tag("tbody", *(_in_short(board, each) for each in tested)),
        class_="summary",
    )


def _in_short(board: Board, tested: Tested) -> Element:
    total = tested.total
    profile = f"Profile {tested.profile}." if tested.profile else ""
    skipped = f"{total.skipped}: {say.tally_of(tested.lacking)}" if total.skipped else "none"
    return tag(
        "tr",
        tag("th", tested.name, " ", _version(tested), scope="row"),
        tag("td", f"{total.right} of {total.played}"),
        tag("td", say.counts(total, board.verdicts), class_="long"),
        tag("td", skipped, class_="long"),
        tag("td", say.tally_of(tested.unreported) or "none", class_="long"),
        tag("td", " ".join(filter(None, (tested.note, profile, say.newer(tested)))), class_="note"),
        end="\n",
    )


def _details(board: Board, tested: Tested) -> Element:
    groups = [
        _group(board, tested, area, list(found)) for area, found in groupby(tested.findings, key=lambda each: each.area)
    ]
    return tag(
        "section",
        tag("h3", tested.name, " ", _version(tested)),
        *(groups or [tag("p", "Nothing.")]),
        id=say.anchor(tested),
        end="\n",
    )


def _group(board: Board, tested: Tested, area: str, findings: list[Finding]) -> Element:
    tally = tested.areas[area]
    told = f"{tally.right} of {tally.played} right; {say.counts(tally, board.verdicts)}"
    return tag(
        "details",
        tag("summary", f"{area}: {told}"),
        *(_finding(board, tested, finding) for finding in findings),
        id=f"{say.anchor(tested)}--{area}",
        data_title=f"{say.named(tested)}: {area}",
        data_told=told,
        end="\n",
    )


def _finding(board: Board, tested: Tested, finding: Finding) -> Element:
    vector = board.vectors.get((tested.kind, finding.vector))
    name = tag("code", finding.vector)
    sign, word = (
        (say.CHOICE, "own choice") if finding.choice else (say.sign(finding.verdict), say.words(finding.verdict))
    )
    rules = [
        tag("a", rule, href=f"../contract/SPEC.md#{rule.lower()}", end=" ") for rule in (vector.rules if vector else ())
    ]
    return tag(
        "article",
        tag(
            "h4",
            tag("span", f"{sign} {word}", class_=f"tag {_BY_SIGN[sign]}", end=" "),
            tag("a", name, href=f"../{vector.path}") if vector else name,
        ),
        tag("p", vector.description if vector else "This vector is no longer in the contract."),
        tag("dl", *_told(finding, rules), end="\n"),
        class_="finding",
        data_verdict="choice" if finding.choice else finding.verdict,
        end="\n",
    )


def _told(finding: Finding, rules: list[Element]) -> Iterator[Element]:
    rows: list[tuple[str, list[Child] | str | None]] = [
        ("Expected", [tag("code", say.in_words(finding.expected))]),
        ("Said", [tag("code", say.in_words(finding.said))]),
        ("Differs", [tag("ul", *(tag("li", reason) for reason in finding.reasons))] if finding.reasons else None),
        ("Rules", list(rules) if rules else None),
        ("How", say.where(finding)),
        ("Own choice", finding.choice),
        ("Known", finding.known),
        (
            "On the wire",
            [tag("pre", "\n".join(map(say.one_line, finding.wire)), tabindex="0")] if finding.wire else None,
        ),
    ]
    for term, value in rows:
        if value:
            yield tag("dt", term)
            yield tag("dd", *([value] if isinstance(value, str) else value))


def _legend(board: Board) -> Element:
    verdicts = [
        (sign, f"{sign} {word}", board.verdicts[name]) for name, sign, word in _filters(board) if name != "choice"
    ]
    rows = [*verdicts, *((word[0], word, means) for word, means in say.MEANS.items())]
    table = tag(
        "table",
        tag(
            "tbody",
            *(
                tag("tr", tag("td", tag("span", word, class_=f"tag {_BY_SIGN.get(sign, 'none')}")), tag("td", means))
                for sign, word, means in rows
            ),
        ),
        class_="legend",
    )
    return tag(
        "section",
        tag("h2", "Legend", id="legend"),
        table,
        tag("p", say.COUNTED),
        tag("p", *prose(say.OWN_CHOICE)),
        end="\n",
    )


def _choices(board: Board) -> Element | None:
    rows = [
        tag("li", tag("a", tag("code", name), href=f"../{vector.path}"), f": {vector.choice}", end="\n")
        for (_, name), vector in sorted(board.vectors.items())
        if vector.choice
    ]
    return tag("section", tag("h2", "Our own choices"), tag("ul", *rows), end="\n") if rows else None
