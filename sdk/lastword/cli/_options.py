"""What the commands that run a suite share: their options, what is checked before a run and what is written after it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lastword.cli._exit import Output
from lastword.conformance._baseline import Baseline
from lastword.conformance._cases import CHOICES, Profile, Selection, load_profile, select
from lastword.conformance._results import ConformanceError, Kind, Run
from lastword.conformance._run import exit_status, laid_over
from lastword.conformance.show._files import check_writable, have_files, same_file
from lastword.conformance.show._junit import write as write_junit
from lastword.conformance.show._printable import printable
from lastword.conformance.show._progress import Progress
from lastword.conformance.show._progress import listener as progress
from lastword.conformance.show._report import write as write_report
from lastword.conformance.show._table import show

_CHOOSE, _JUDGE, _SHOW = "Which cases", "What counts as failed", "What is shown and written"

RunPatterns = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        metavar="PATTERN",
        rich_help_panel=_CHOOSE,
        help="Play only these: * is any name within one component, ** any number of them. May be repeated.",
    ),
]
SkipPatterns = Annotated[
    list[str] | None,
    typer.Option("--skip", metavar="PATTERN", rich_help_panel=_CHOOSE, help="Leave these out. May be repeated."),
]
Segmentation = Annotated[
    str,
    typer.Option(
        metavar="|".join(CHOICES),
        rich_help_panel=_CHOOSE,
        help="How the bytes are cut into writes: as each vector lists, in all ways, or in one.",
    ),
]
Jobs = Annotated[
    int, typer.Option(metavar="N", min=1, max=64, rich_help_panel=_CHOOSE, help="How many cases at a time.")
]
ExpectedFailures = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=_JUDGE,
        help="Known failures, one `pattern  # reason` a line. A line that nothing fails by any more fails the run.",
    ),
]
ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME|FILE",
        rich_help_panel=_JUDGE,
        help="Score only the vectors that this version of the contract requires; the others are played and shown.",
    ),
]
ReportPath = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", rich_help_panel=_SHOW, help="Write the results as JSON."),
]
JUnitPath = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", rich_help_panel=_SHOW, help="Write the results as JUnit XML."),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", metavar="", rich_help_panel=_SHOW, help="Show every case, and what adapters wrote to stderr."
    ),
]
Trace = Annotated[
    bool,
    typer.Option(
        "--trace", metavar="", rich_help_panel=_SHOW, help="Show what was on the wire of each failure, with times."
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", metavar="", rich_help_panel=_SHOW, help="Show what fails the run, a line each, and no more."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The shared options as given."""

    run: list[str] | None = None
    skip: list[str] | None = None
    segmentation: str = "listed"
    jobs: int = 4
    expected_failures: Path | None = None
    profile: str | None = None
    report: Path | None = None
    junit: Path | None = None
    verbose: bool = False
    trace: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """A run that may begin: every option was read and found good."""

    options: Options
    selection: Selection
    baseline: Baseline
    profile: Profile | None
    console: Console

    @contextlib.contextmanager
    def listener(self) -> Iterator[Progress]:
        """Who is told of the run while it goes on: a bar on a terminal. Ctrl-C takes it away, and shows what was played."""
        told = progress(Output(stderr=True, quiet=self.options.quiet))
        try:
            with told:
                yield told
        except KeyboardInterrupt as interruption:
            if getattr(interruption, "number", None) != signal.SIGHUP:  # then nobody is there to see it
                self._show_part(told)
            raise

    def conclude(self, run: Run) -> int:
        """Write what is to be written, show the run, and give the exit status."""
        unwritten = [
            f"{path} cannot be written: {error.strerror}"
            for path, write in ((self.options.report, write_report), (self.options.junit, write_junit))
            if path is not None and (error := _tried(write, run, path))
        ]
        self._show(run)
        if unwritten:  # told last: what the run found is not lost with it
            raise ConformanceError("; ".join(unwritten))
        return exit_status(run)

    def _show(self, run: Run, *, planned: int = 0) -> None:
        if not self.options.quiet:
            show(run, self.console, verbose=self.options.verbose, trace=self.options.trace, planned=planned)
            return
        for each in run.failures:
            print(each.result.case.name, each.result.verdict, sep=": ")
        for line in run.stale:
            print(printable(line), "stale", sep=": ")

    def _show_part(self, told: Progress) -> None:
        """Show an interrupted run as far as it went. What is in no report makes no baseline stale."""
        if told.implementation is None:
            return
        part = laid_over(
            told.results,
            self.selection,
            implementation=told.implementation,
            baseline=self.baseline,
            profile=self.profile,
        )
        if part.played:
            self._show(replace(part, stale=()), planned=len(self.selection.cases))

    def note(self, what: str, text: str = "") -> None:
        """Say something beside the results, on stderr, with the words of others that belong to it."""
        print(what, *(printable(line) for line in text.strip().splitlines()), sep="\n  ", file=sys.stderr)


def prepare(kind: Kind, options: Options) -> Session:
    """Check everything that can be wrong before the first case; ``ConformanceError`` names what is."""
    if os.name != "posix":
        raise ConformanceError("the suite needs a POSIX system (Linux, macOS, WSL): it resets sockets and ends groups")
    _check_files(options)
    have_files(options.jobs)
    selection = select(kind, run=options.run or (), skip=options.skip or (), segmentation=options.segmentation)
    profile = load_profile(options.profile) if options.profile is not None else None
    if profile and not any(case.id in profile.vectors for case in selection.cases):
        raise ConformanceError(f"profile {options.profile}: it requires none of the {kind} cases that are to be played")
    return Session(
        options,
        selection,
        Baseline.read(options.expected_failures) if options.expected_failures else Baseline(),
        profile,
        Output(highlight=False),
    )


def _tried(write: Callable[[Run, Path], None], run: Run, path: Path) -> OSError | None:
    try:
        write(run, path)
    except OSError as error:
        return error
    return None


def _check_files(options: Options) -> None:
    """See that what will be written can be, and that it takes the place of nothing that is given here."""
    written = [path for path in (options.report, options.junit) if path is not None]
    profile = Path(options.profile) if options.profile else None
    given = [path for path in (*written, options.expected_failures, profile) if path is not None]
    for path in written:
        try:
            check_writable(path)
            twice = sum(same_file(path, each) for each in given) > 1
        except OSError as error:
            raise ConformanceError(f"{path} cannot be written: {error.strerror}") from error
        if twice:
            raise ConformanceError(f"{path} is given for two things; --report and --junit need a file each")
