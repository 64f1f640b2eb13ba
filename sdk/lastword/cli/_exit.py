"""How every command ends: with a sentence and a status, whatever stopped it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import Final

import typer
from rich.console import Console

from lastword._command_error import CommandError
from lastword._output import discard
from lastword.conformance.show._printable import printable

_SIGPIPE: Final = 128 + 13  # as shells have it


class _EndedError(KeyboardInterrupt):
    """A signal that ends the process and would leave adapters behind, on its way through the same exits as Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _end(number: int, _: object) -> None:
    raise _EndedError(number)


class Output(Console):
    """A console whose reader may leave."""

    def on_broken_pipe(self) -> None:
        """Leave it to `ends_well`; rich's own status is 1."""
        raise BrokenPipeError


@contextlib.contextmanager
def ends_well() -> Iterator[None]:
    """Turn what stops a command into one sentence and its exit status.

    2 is what could not be run, 130 Ctrl-C, and 141, without a word, that whoever read on has seen enough (``| head``): that
    is no error, and not what 1 means.
    """
    for each in (signal.SIGTERM, signal.SIGHUP) if os.name == "posix" else ():
        if signal.getsignal(each) is signal.SIG_DFL:  # nohup has its way
            signal.signal(each, _end)
    try:
        with _sentences():
            yield
    except BrokenPipeError as error:
        discard(sys.stdout, sys.stderr)
        raise typer.Exit(_SIGPIPE) from error


def _flush() -> None:
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            discard(sys.stdout)
            raise


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    try:
        try:
            yield
        finally:
            _flush()
    except CommandError as error:
        print(f"lastword: {printable(str(error))}", file=sys.stderr)
        raise typer.Exit(2) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"lastword: {printable(str(error))}", file=sys.stderr)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        number = error.number if isinstance(error, _EndedError) else signal.SIGINT
        print("lastword: interrupted", file=sys.stderr)
        raise typer.Exit(128 + number) from error
