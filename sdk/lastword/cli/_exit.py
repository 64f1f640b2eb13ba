"""How every command ends: with a sentence and a status, whatever stopped it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

import typer

from lastword._command_error import CommandError
from lastword.conformance.show._printable import printable


class _EndedError(KeyboardInterrupt):
    """A signal that ends the process and would leave adapters behind, on its way through the same exits as Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _end(number: int, _: object) -> None:
    raise _EndedError(number)


@contextlib.contextmanager
def ends_well() -> Iterator[None]:
    """Turn what stops a command into one sentence and its exit status: 2 for what could not be run, 130 for Ctrl-C."""
    for each in (signal.SIGTERM, signal.SIGHUP) if os.name == "posix" else ():
        if signal.getsignal(each) is signal.SIG_DFL:  # nohup has its way
            signal.signal(each, _end)
    try:
        yield
    except CommandError as error:
        print(f"lastword: {printable(str(error))}", file=sys.stderr)
        raise typer.Exit(2) from error
    except OSError as error:
        print(f"lastword: {printable(str(error))}", file=sys.stderr)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        number = error.number if isinstance(error, _EndedError) else signal.SIGINT
        print("lastword: interrupted", file=sys.stderr)
        raise typer.Exit(128 + number) from error
