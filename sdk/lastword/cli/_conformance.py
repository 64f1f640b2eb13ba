"""``lastword conformance``: the suite against a client, and what it consists of."""

from __future__ import annotations

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="Show how a client or a server behaves when things go wrong: what it says of each ending, and what it does.",
)
