"""lastword's sync client: streams by iteration, which raises, and other calls through ``with_outcome``."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from lastword_words import CAPABILITIES, NOTE, Reading, answered, create, options, report
from protocol import serve

from lastword import Client, LastwordError, __version__


def run(case: Mapping[str, Any]) -> dict[str, Any]:
    call = case["call"]
    with Client(**options(case)) as client:
        for _ in range(call["repeat"]):
            with cancelled(client, call["cancel"] or {}):
                result = read(client, call) if call["stream"] else answered(*create(client.with_outcome, call))
    return result


def read(client: Client, call: Mapping[str, Any]) -> dict[str, Any]:
    try:
        stream = create(client, call)
    except LastwordError as error:
        return report(error)
    reading = Reading(stream, call)
    try:
        for chunk in stream:
            if reading.last(chunk):
                stream.close()
                break
    except LastwordError as error:
        return reading.report(error)
    return reading.report()


@contextlib.contextmanager
def cancelled(client: Client, cancel: Mapping[str, int]) -> Iterator[None]:
    """Another thread closes the client after so many ms, if the case says so."""
    timer = threading.Timer(cancel.get("after_ms", 0) / 1000, client.close)
    if "after_ms" in cancel:
        timer.start()
    yield
    timer.cancel()


if __name__ == "__main__":
    serve(run, name="lastword-sync", version=__version__, capabilities=CAPABILITIES, note=NOTE)
