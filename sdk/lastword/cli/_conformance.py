"""``lastword conformance``: the suite against a client, and what it consists of."""

from __future__ import annotations

import shlex
from typing import Annotated, Final

import typer

from lastword.cli import _options as shared
from lastword.cli._dashes import TakesCommand
from lastword.cli._exit import ends_well
from lastword.cli._list import list_vectors
from lastword.cli._server import server
from lastword.conformance._results import ConformanceError
from lastword.conformance._run import run as play_all
from lastword.conformance.client._pool import START_LIMIT, AdapterPool

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Show how a client or a server behaves when things go wrong: what it says of each ending, and what it does.",
)


Command = Annotated[list[str] | None, typer.Argument(metavar="CMD", help="Your adapter, with its arguments.")]
StartLimit = Annotated[
    float, typer.Option(min=0.1, metavar="SECONDS", help="How long the adapter may take to start, and to answer first.")
]

_TOLD: Final = 3  # failures whose stderr is shown
_LINES: Final = 12  # of each, the last ones; --verbose shows all of them, as far as they were kept


@app.command(cls=TakesCommand, options_metavar="[OPTIONS] --")
def client(
    command: Command = None,
    *,
    run: shared.RunPatterns = None,
    skip: shared.SkipPatterns = None,
    segmentation: shared.Segmentation = "listed",
    jobs: shared.Jobs = 4,
    start_limit: StartLimit = START_LIMIT,
    expected_failures: shared.ExpectedFailures = None,
    profile: shared.ProfileName = None,
    report: shared.ReportPath = None,
    junit: shared.JUnitPath = None,
    verbose: shared.Verbose = False,
    trace: shared.Trace = False,
    quiet: shared.Quiet = False,
) -> None:
    """Play scripted servers to a client library, and show what it makes of each.

    CMD is your adapter: a small program that reads one call a line on stdin, and makes it with the library.
    It answers with what came of it (the protocol: contract/schemas/adapter.json).

    [bold]Example[/bold]: lastword conformance client --run 'ending/*' -- python my_adapter.py

    Exit status: 0 all right or known, 1 something is not, 2 the suite or the adapter could not run, 130 interrupted.
    """
    with ends_well():
        if not command:
            raise ConformanceError("CMD is missing: lastword conformance client [OPTIONS] -- python my_adapter.py")
        options = shared.Options(
            run=run,
            skip=skip,
            segmentation=segmentation,
            jobs=jobs,
            expected_failures=expected_failures,
            profile=profile,
            report=report,
            junit=junit,
            verbose=verbose,
            trace=trace,
            quiet=quiet,
        )
        session = shared.prepare("client", options)
        size = min(jobs, len(session.selection.cases))
        with AdapterPool(command, size=size, start_limit=start_limit) as pool, session.listener() as listener:
            result = play_all(
                session.selection,
                pool.play,
                implementation=pool.implementation,
                jobs=size,
                listener=listener,
                baseline=session.baseline,
                profile=session.profile,
                stop=pool.stop,
            )
        status = session.conclude(result)
        _tell_of_processes(session, pool, shlex.join(command))
        raise typer.Exit(status)


app.command("server", cls=TakesCommand, options_metavar="[OPTIONS] --")(server)
app.command("list")(list_vectors)


def _tell_of_processes(session: shared.Session, pool: AdapterPool, command: str) -> None:
    told: dict[str, list[str]] = {}
    for name, text in pool.stderr.items():
        told.setdefault(text.strip(), []).append(name)
    told.pop("", None)
    verbose = session.options.verbose
    for text, names in list(told.items())[: None if verbose else _TOLD]:
        session.note(f"stderr of the adapter that failed in {', '.join(names)}:", text if verbose else _end_of(text))
    if len(told) > _TOLD and not verbose:
        session.note(f"stderr of {len(told) - _TOLD} more failures: --verbose shows it")
    for number, text in enumerate(pool.logs if verbose else (), 1):
        if text.strip():
            session.note(f"stderr of adapter {number}:", text)
    for complaint in dict.fromkeys(pool.complaints):
        session.note(f"note: {command}: {complaint}")


def _end_of(text: str) -> str:
    lines = text.splitlines()
    return "\n".join(lines if len(lines) <= _LINES else ["…", *lines[-_LINES:]])
