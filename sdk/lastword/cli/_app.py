"""The commands, put together."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

from lastword import __version__
from lastword.cli import _conformance, _contract, _report

app = typer.Typer(
    name="lastword",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Every request to an LLM server gets exactly one last word: completed, incomplete, failed or cancelled.",
)
app.add_typer(_conformance.app, name="conformance")
app.add_typer(_contract.app, name="contract")
app.command("report")(_report.report)
for _other in entry_points(group="lastword.commands"):  # functions: the server side's, which the SDK does not import
    app.command(_other.name)(_other.load())


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lastword {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Say it and end.")
    ] = False,
) -> None:
    """Hold what all commands share."""
