"""``lastword conformance list``: what the suite consists of."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, TextIO

import typer
from rich.table import Table

from lastword._contract import vectors
from lastword.cli._exit import Output, ends_well
from lastword.conformance._cases import matches, nearest
from lastword.conformance._results import ConformanceError


class Kinds(StrEnum):
    """The kinds of vectors, as ``--kind`` takes them."""

    CLIENT = "client"
    SERVER = "server"
    DECODE = "decode"
    RETRY = "retry"


def list_vectors(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATTERN]...", help="Only these: 'ending/*', '**'.", show_default=False),
    ] = None,
    *,
    kind: Annotated[
        list[Kinds] | None, typer.Option(help="Only this kind. May be repeated.", show_default="all")
    ] = None,
    requirements: Annotated[
        bool, typer.Option("--requirements", metavar="", help="With the rules of SPEC.md that each shows.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="As a JSON list, with everything that is said here.")
    ] = False,
) -> None:
    """List the vectors: what is tried with clients and servers, and what a decoder and a retry loop can be held against.

    [bold]Example[/bold]: lastword conformance list --kind client 'ending/*'
    """
    with ends_well():
        found = list(_found(kind or list(Kinds), patterns or []))
        if not found:
            raise ConformanceError(_names_nothing(patterns or [], kind or []))
        if as_json:
            typer.echo(json.dumps(found, indent=2, ensure_ascii=not _is_utf_8(sys.stdout)))
        else:
            _show(found, requirements=requirements)


def _names_nothing(patterns: list[str], kinds: list[Kinds]) -> str:
    of_kind = "".join(f" --kind {kind.value}" for kind in kinds)
    close = (nearest(each, [vector["id"] for vector in _found(kinds or list(Kinds), [])]) for each in patterns)
    hint = f"did you mean {' '.join(found)}? " if (found := [each for each in close if each]) else ""
    named = ", ".join(map(repr, patterns)) or "anything"
    return f"no vector is named by {named}: {hint}`lastword conformance list{of_kind}` shows them all"


def _is_utf_8(stream: TextIO | None) -> bool:
    # A backslash for what another encoding lacks would be no JSON.
    return stream is not None and codecs.lookup(stream.encoding).name == "utf-8"


def _found(kinds: list[Kinds], patterns: list[str]) -> Iterator[dict[str, Any]]:
    for kind in kinds:
        for vector in vectors(kind):
            if not patterns or any(matches(pattern, vector["id"]) for pattern in patterns):
                yield {
                    "kind": kind.value,
                    "id": vector["id"],
                    "description": vector["description"],
                    "requirements": vector["requirements"],
                    "needs": vector.get("needs", []),
                    "segmentations": vector.get("segmentations", ["event"]),
                    "choice": vector.get("choice"),
                }


def _show(found: list[dict[str, Any]], *, requirements: bool) -> None:
    console = Output(highlight=False)
    rows = [_row(each, requirements=requirements) for each in found]
    if not console.is_terminal:  # a line each, for grep and cut
        typer.echo("\n".join("\t".join(row) for row in rows))
        return
    table = Table.grid(padding=(0, 2))
    for column in range(len(rows[0])):
        table.add_column(no_wrap=column < len(rows[0]) - 1, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    counted = {kind: sum(each["kind"] == kind for each in found) for kind in Kinds}
    console.print(", ".join(f"{count} {kind}" for kind, count in counted.items() if count), style="dim")


def _row(each: dict[str, Any], *, requirements: bool) -> list[str]:
    rules = [" ".join(each["requirements"])] if requirements else []
    needs = f" (needs {', '.join(each['needs'])})" if each["needs"] else ""
    return [each["kind"], each["id"], *rules, each["description"] + needs]
