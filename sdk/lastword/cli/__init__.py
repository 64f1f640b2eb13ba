"""The command ``lastword``: see ``lastword --help``. Needs the ``cli`` extra; the conformance suite the one of its name."""

from __future__ import annotations

import io
import os
import signal
import sys

from lastword._extras import how_to_install

_EXTRAS = {
    **dict.fromkeys(("typer", "rich"), "cli"),
    **dict.fromkeys(("jsonschema", "referencing", "h11"), "conformance"),  # which brings those of `cli`
}
_OF_COMMANDS = {"conformance": "conformance", "shim": "sidecar"}


def _end_the_start(*_: object) -> None:
    """A server has nothing to put away before it takes signals in hand itself, and its imports take a while."""
    os.write(2, b"lastword shim: interrupted\n")
    os._exit(130)


def main() -> int:
    """Run the command line; the exit status: 0 well, 1 the answer is no, 2 it could not be found out, 130 Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character gets its number, and no traceback
            stream.reconfigure(errors="backslashreplace")
    if sys.argv[1:2] == ["shim"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_the_start)
    try:
        from lastword.cli._app import app

        app()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        extra = _EXTRAS.get(missing)
        if extra is None:
            raise
        for command in sys.argv[1:2]:  # which may need more: nobody is told of one first and then of the other
            extra = _OF_COMMANDS.get(command, extra)
        print(f"lastword: this needs {missing}: {how_to_install(extra)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("lastword: interrupted", file=sys.stderr)
        return 130
    return 0
