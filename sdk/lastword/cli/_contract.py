"""``lastword contract``: the contract as a directory for other projects, and whether such a directory is still what it was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lastword._codes import CONTRACT_VERSION
from lastword._contract_export import SOURCE, Copy, inspect
from lastword._contract_export import export as write
from lastword.cli._exit import ends_well
from lastword.conformance.show._printable import printable, shortened

app = typer.Typer(no_args_is_help=True, help="Take the contract (codes, schemas, vectors) into a project of your own.")

_SHOWN = 10  # names of files of one sort


@app.command()
def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to; made if it is not there.")],
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace a contract that is there already.")] = False,
) -> None:
    """Write the contract to a directory, whole or not at all: codes, rules, schemas and vectors, with licence and SOURCE.

    SOURCE says which version it is, where it came from, and the hash by which `verify` knows it again.

    [bold]Example[/bold]: lastword contract export vendor/lastword-contract

    [bold]Exit status[/bold]: 0 written, 2 not.
    """
    with ends_well():
        count = write(directory, force=force)
        typer.echo(f"Wrote contract {CONTRACT_VERSION} to {directory}: {count} files.")
        typer.echo(f"Next: read {directory / 'README.md'}, commit the directory, and let your CI run")
        typer.echo(f"  lastword contract verify {directory}")


@app.command()
def verify(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A contract that was exported, or copied.")],
) -> None:
    """Tell whether a copy of the contract was changed, and whether it is the one of this lastword.

    [bold]Exit status[/bold]: 0 it is this contract, unchanged; 1 it is another version, or was changed; 2 it is no contract.
    """
    with ends_well():
        copy = inspect(directory)
        for line in _verdict(directory, copy):
            typer.echo(printable(line))
    raise typer.Exit(0 if copy.current else 1)


def _verdict(directory: Path, copy: Copy) -> list[str]:
    if copy.current:
        return [f"{directory} is contract {CONTRACT_VERSION}, unchanged."]
    if copy.version != CONTRACT_VERSION:
        state = {True: "unchanged since it was exported", False: "changed since it was exported", None: f"no {SOURCE}"}
        version = shortened(" ".join(copy.version.split()), 80) or "of no version"
        is_another = f"{directory} is contract {version} ({state[copy.intact]})"
        return [
            f"{is_another}; this lastword has {CONTRACT_VERSION}.",
            f"To take that: lastword contract export --force {directory}",
        ]
    since = f"as it was exported ({copy.source.get('origin', 'origin unknown')}), and " if copy.intact else ""
    lines = [f"{directory} is {since}not the contract {CONTRACT_VERSION} of this lastword:"]
    for sort, names in (("changed", copy.changed), ("missing", copy.missing), ("added", copy.added)):
        lines += [f"  {sort}: {name}" for name in names[:_SHOWN]]
        lines += [f"  {sort}: and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    if copy.endings:
        lines.append("Only the ends of lines differ: keep git from converting them (`* -text` in .gitattributes).")
    return [*lines, f"To have it back: lastword contract export --force {directory}"]
