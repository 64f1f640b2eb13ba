"""``lastword shim``: the options, and what is said where one of them cannot be used."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from lastword._extras import how_to_install


def _show_settings(wanted: bool) -> None:
    if not wanted:
        return
    try:
        from lastword_shim._settings import Settings
    except ModuleNotFoundError as error:
        _lacking(error)
    for variable, takes, default, meaning in Settings.table():
        typer.echo(f"{variable}: {takes}; default {default}")
        typer.echo(textwrap.fill(meaning.replace("``", ""), 100, initial_indent="    ", subsequent_indent="    "))
    raise typer.Exit


_LISTEN, _UPSTREAM = "Where it listens", "The upstream"


def shim(
    *,
    upstream: Annotated[
        str,
        typer.Option(
            metavar="URL", rich_help_panel=_UPSTREAM, help="The server behind it, such as http://127.0.0.1:8000."
        ),
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", rich_help_panel=_LISTEN, help="0.0.0.0 for all of this machine's.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=65535, rich_help_panel=_LISTEN, help="0: any free one; the ready line tells which."
        ),
    ] = 8080,
    shutdown_timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            rich_help_panel=_LISTEN,
            help="How long open requests may take to finish after the first Ctrl-C, SIGTERM or SIGHUP.",
        ),
    ] = 30.0,
    upstream_connect: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.01, rich_help_panel=_UPSTREAM, help="How long connecting may take."),
    ] = 5.0,
    upstream_keep_alive: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            rich_help_panel=_UPSTREAM,
            help="For how long an idle connection is used again. Must be less than the upstream keeps it: "
            "vLLM and uvicorn do for 5 s. 0: never.",
        ),
    ] = 4.0,
    upstream_ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_UPSTREAM,
            help="Certificates to trust for https://, in place of the system's.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", metavar="", help="Check the settings, ask the upstream once, and end.")
    ] = False,
    settings: Annotated[
        bool,
        typer.Option(
            "--settings", metavar="", callback=_show_settings, is_eager=True, help="Explain all settings, and end."
        ),
    ] = False,
    until_stdin_closes: Annotated[bool, typer.Option("--until-stdin-closes", hidden=True)] = False,
) -> None:
    """Stand in front of an OpenAI-compatible server, so that each request gets exactly one honest last word.

    It is the middleware that vLLM takes with --middleware lastword_shim.Shim, for any server and as a process of its own.
    Its settings are the same LASTWORD_* variables: --settings explains them, --check shows those that are set.

    [bold]Example[/bold]: lastword shim --upstream http://127.0.0.1:8000

    [bold]Another[/bold]: LASTWORD_IDLE_TIMEOUT=30 lastword shim --upstream http://127.0.0.1:8000 --host 0.0.0.0 --port 80

    Once it takes requests, it prints "ready URL". An upstream that does not answer yet is named in the log.
    The first Ctrl-C, SIGTERM or SIGHUP drains: new requests are refused, open ones may finish. A Ctrl-C or SIGTERM after
    that ends it at once.

    [bold]Exit status[/bold]: 0 stopped in order, 1 --check found it unwell, 2 no start, 130 Ctrl-C early or as the second
    signal, 143 SIGTERM as the second.
    """
    try:
        from lastword_shim.sidecar.serve import Service, StartError, check_only, run
    except ModuleNotFoundError as error:
        _lacking(error)
    service = Service(
        upstream=upstream,
        host=host,
        port=port,
        shutdown_timeout=shutdown_timeout,
        connect_timeout=upstream_connect,
        keep_alive=upstream_keep_alive,
        ca=upstream_ca,
        with_stdin=until_stdin_closes,
    )
    try:
        if check:
            well, said = check_only(service)
            typer.echo(said)
            raise typer.Exit(0 if well else 1)
        run(service)
    except StartError as error:
        _fail(str(error))


def _lacking(error: ModuleNotFoundError) -> NoReturn:
    if (error.name or "").startswith("lastword"):
        raise error
    _fail(f"this needs {error.name}: {how_to_install('sidecar')}")


def _fail(message: str) -> NoReturn:
    typer.echo(f"lastword shim: {message}", err=True)
    raise typer.Exit(2)
