"""``lastword conformance server``: the suite against any OpenAI-compatible server."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from lastword.cli import _options as shared
from lastword.conformance._cases import ConformanceError
from lastword.conformance._results import Implementation

_SERVER = "The server"


def server(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- CMD...]",
            help="Start the server with this, and end it with the run. {port}, {url}, {upstream} and {upstream_port} are "
            "filled in.",
            show_default=False,
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option(rich_help_panel=_SERVER, help="Where it answers; with CMD a free port if left out.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(rich_help_panel=_SERVER, help="The model to ask for; default: the first it lists.")
    ] = None,
    api_key: Annotated[
        str, typer.Option(rich_help_panel=_SERVER, help="Sent as a bearer token.", envvar="LASTWORD_API_KEY")
    ] = "key-of-the-vectors",
    upstream_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            rich_help_panel=_SERVER,
            help="Play the engine behind it here, as 127.0.0.1; 0 takes a free port, for a CMD that names {upstream}.",
        ),
    ] = None,
    capabilities: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            rich_help_panel=_SERVER,
            help="What it has, of: completions, choices, tools (these if left out), keys, timers, deadline, admission.",
        ),
    ] = None,
    context: Annotated[
        int | None, typer.Option(min=1, rich_help_panel=_SERVER, help="Its context in tokens, where it does not say.")
    ] = None,
    extra_body: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            rich_help_panel=_SERVER,
            help="Members that every generation gets, such as '{\"ignore_eos\": true}'.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(rich_help_panel=_SERVER, help="What reports call it.")] = None,
    server_version: Annotated[
        str | None, typer.Option(rich_help_panel=_SERVER, help="Its version, for reports.")
    ] = None,
    note: Annotated[str, typer.Option(rich_help_panel=_SERVER, help="A sentence on it, for reports.")] = "",
    start_seconds: Annotated[
        float, typer.Option(min=1, rich_help_panel=_SERVER, help="How long CMD may take until it answers.")
    ] = 180.0,
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

    Cases are played one after the other, those that end the server last. Exit status: 0 all is right or known,
    1 something is not, 2 the run could not be made.
    """
    options = shared.Options(
        run=run, skip=skip, jobs=1, expected_failures=expected_failures, profile=profile, report=report, junit=junit,
        verbose=verbose, trace=trace, quiet=quiet,
    )  # fmt: skip
    with shared.ends_well(), contextlib.ExitStack() as stack:
        session = shared.prepare("server", options)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started ends with us
        target = _target(url, bool(command), model, api_key, context, extra_body)
        raise typer.Exit(
            _play(
                stack,
                session,
                target,
                command,
                upstream_port,
                start_seconds,
                model,
                capabilities,
                (name, server_version, note),
            )
        )


def _target(
    url: str | None, has_command: bool, model: str | None, api_key: str, context: int | None, extra_body: str | None
) -> Any:
    from lastword.conformance._server_request import Target, read_url

    if url is None:
        if not has_command:
            raise ConformanceError("--url: where does the server answer? Or give its command after --")
        with socket.create_server(("127.0.0.1", 0)) as free:
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
    host, port, tls, prefix = read_url(url)
    extra = _extra(extra_body)
    return Target(host, port, tls, prefix, model=model or "m", api_key=api_key, context=context, extra=extra)


def _extra(text: str | None) -> Mapping[str, Any]:
    try:
        extra = json.loads(text or "{}")
    except ValueError as error:
        raise ConformanceError(f"--extra-body: {error}") from error
    if not isinstance(extra, dict):
        raise ConformanceError("--extra-body: a JSON object is needed")
    return extra


def _play(
    stack: contextlib.ExitStack,
    session: shared.Session,
    target: Any,
    command: list[str] | None,
    upstream_port: int | None,
    start_seconds: float,
    model: str | None,
    declared: str | None,
    named: tuple[str | None, str | None, str],
) -> int:
    from lastword.conformance._run import run
    from lastword.conformance._sandwich import Engine
    from lastword.conformance._server import ServerPlayer, capabilities, in_order
    from lastword.conformance._server_probe import look
    from lastword.conformance._server_process import ServerProcess
    from lastword.conformance._server_scene import Stage

    if upstream_port is None and any("{upstream" in part for part in command or ()):
        upstream_port = 0
    engine = stack.enter_context(Engine(upstream_port)) if upstream_port is not None else None
    process = None
    if command:
        upstream = engine.address if engine else None
        process = ServerProcess(command, target, upstream=upstream, patience=start_seconds)
        stack.callback(process.close)
        process.start()
    found = look(target, model=model)
    stage = Stage(found.target, engine, None if engine else found.gauge, process)
    name, version, note = named
    implementation = Implementation(
        name or found.name, version or found.version, "HTTP", capabilities(declared, stage), note
    )
    player = ServerPlayer(stage)
    with session.listener() as listener:
        result = run(
            in_order(session.selection), player.play, implementation=implementation, jobs=1, listener=listener,
            baseline=session.baseline, profile=session.profile, stop=player.stop,
        )  # fmt: skip
    return session.conclude(result)
