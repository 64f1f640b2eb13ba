"""The adapter protocol, version 1: one JSON object a line on stdin and stdout.  Copy this file; it needs Python only.

An adapter is a function that makes one call with its library, ``run(case) -> result``, and one line that serves it::

    serve(run, name="my-client", version="1.0", capabilities=["cancel"])

The result has the members of ``contract/schemas/outcome.json`` that the library has a notion of; ``outcome`` and ``code``
always.  ``raise Unable("why")`` if the call cannot even be tried.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn


class Unable(Exception):
    """The library has no way to make this call."""


def serve(
    run: Callable[[Any], Mapping[str, Any]], *, name: str, version: str, capabilities: Iterable[str], note: str = ""
) -> None:
    """Answer the runner's lines until it stops, or closes stdin; SIGTERM ends the process at once."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # even where a library waits for a server
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # stdout is the protocol's: what a library prints goes to stderr
    hello = {"protocol": 1, "name": name, "version": version, "language": "python", "note": note}
    hello["capabilities"] = sorted(capabilities)
    for line in sys.stdin.buffer:
        message = _message(line)
        if message is None:
            said = line.decode("utf-8", "replace").strip()
            print(f"{name}: the runner sent {said}, which is no line of the adapter protocol", file=sys.stderr)
            _leave(1)
        if message["cmd"] == "stop":
            break
        done = hello if message["cmd"] == "start" else {"seq": message["seq"], **_answer(run, message.get("case"))}
        answers.write(json.dumps(done) + "\n")
        answers.flush()
    _leave(0)


def _leave(status: int) -> NoReturn:
    """End the process, whatever threads the library keeps."""
    sys.stderr.flush()
    os._exit(status)


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
        return message if message["cmd"] in ("start", "stop") or (message["cmd"] == "run" and message["seq"]) else None
    except (ValueError, TypeError, KeyError, IndexError):
        return None


def _answer(run: Callable[[Any], Mapping[str, Any]], case: Any) -> dict[str, Any]:
    try:
        return {"result": run(case)}
    except Unable as reason:
        return {"unable": str(reason)}
    except Exception as error:  # noqa: BLE001  the adapter's own fault: the runner is told, stderr has the place
        traceback.print_exc()
        return {"unable": f"the adapter failed: {type(error).__name__}: {error}"}
