"""``lastword conformance server``: the suite against any OpenAI-compatible server."""

from __future__ import annotations

from typing import Annotated

import typer

from lastword.cli import _options as shared
from lastword.cli._exit import ends_well
from lastword.conformance._cases import API_KEY
from lastword.conformance.server._probe import MOST_CONTEXT
from lastword.conformance.server._process import START_LIMIT
from lastword.conformance.server._scene import ANSWER_LIMIT

_SERVER, _HAS = "The server", "What is known of it"


def server(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CMD",
            help="After --: start the server with this, and end it with the run. {port}, {url}, {upstream} and "
            "{upstream_port} are filled in.",
            show_default=False,
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", rich_help_panel=_SERVER, help="Where it answers; with CMD a free port if left out."
        ),
    ] = None,
    api_key: Annotated[
        str,
        typer.Option(
            metavar="API_KEY", rich_help_panel=_SERVER, help="Sent as a bearer token.", envvar="LASTWORD_API_KEY"
        ),
    ] = API_KEY,
    upstream_port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            rich_help_panel=_SERVER,
            help="Play the engine behind it at this port of 127.0.0.1; not needed where CMD names {upstream}.",
        ),
    ] = None,
    start_limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.1, rich_help_panel=_SERVER, help="How long CMD may take until it answers first."
        ),
    ] = START_LIMIT,
    answer_limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            rich_help_panel=_SERVER,
            help="How long an answer may take, where a vector does not say.",
        ),
    ] = ANSWER_LIMIT,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_HAS, help="The model to ask for; default: the first it lists."),
    ] = None,
    capabilities: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            rich_help_panel=_HAS,
            help="What it has, of: completions, choices, tools (these if left out), responses, messages, keys, timers, "
            "deadline, admission; -shutdown, say, takes away what would be found.",
        ),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(
            metavar="TOKENS", min=1, max=MOST_CONTEXT, rich_help_panel=_HAS, help="Its context, where it does not say."
        ),
    ] = None,
    extra_body: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            rich_help_panel=_HAS,
            help="Members that every generation gets, such as '{\"ignore_eos\": true}': answers must take some seconds.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", rich_help_panel=_HAS, help="What reports call it, if not what CMD starts or what it says."
        ),
    ] = None,
    server_version: Annotated[
        str | None, typer.Option(metavar="TEXT", rich_help_panel=_HAS, help="Its version, for reports.")
    ] = None,
    note: Annotated[
        str, typer.Option(metavar="TEXT", rich_help_panel=_HAS, help="A sentence on it, for reports.")
    ] = "",
    run: shared.RunPatterns = None,
    skip: shared.SkipPatterns = None,
    expected_failures: shared.ExpectedFailures = None,
    profile: shared.ProfileName = None,
    report: shared.ReportPath = None,
    junit: shared.JUnitPath = None,
    verbose: shared.Verbose = False,
    trace: shared.Trace = False,
    quiet: shared.Quiet = False,
) -> None:
    """Play client against an OpenAI-compatible server, and engine behind it where that can be arranged.

    Cases are played one after the other, those that end the server last.

    Exit status: 0 all is right or known, 1 something is not, 2 the run could not be made, 130 interrupted.
    """
    from lastword.conformance._run import run as run_cases
    from lastword.conformance.server._player import in_order
    from lastword.conformance.server._start import Server, on_stage

    options = shared.Options(
        run=run, skip=skip, jobs=1, expected_failures=expected_failures, profile=profile, report=report, junit=junit,
        verbose=verbose, trace=trace, quiet=quiet,
    )  # fmt: skip
    tested = Server(
        url=url, model=model, api_key=api_key, context=context, extra_body=extra_body, capabilities=capabilities,
        upstream_port=upstream_port, command=command or (), start_limit=start_limit, answer_limit=answer_limit, name=name,
        version=server_version, note=note,
    )  # fmt: skip
    with ends_well():
        session = shared.prepare("server", options)
        with on_stage(tested) as (player, implementation), session.listener() as listener:
            result = run_cases(
                in_order(session.selection), player.play, implementation=implementation, jobs=1, listener=listener,
                baseline=session.baseline, profile=session.profile, stop=player.stop,
            )  # fmt: skip
        raise typer.Exit(session.conclude(result))
