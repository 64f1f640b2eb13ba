"""``python -m lastword.demo``: a stream from first to last word, then the endings that usually stay silent.

Streams an answer through the SDK from an engine behind the sidecar, then plays broken endings to the stock openai
package and to lastword and prints what each of them reported, then has the embedded engine fail, bare and behind the
shim. Everything is really run; it ends by itself in some ten seconds and leaves nothing running.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final, NoReturn

from lastword import Client, LastwordError
from lastword._output import discard
from lastword.demo._endings import (
    BY_CHOICE,
    NOTE,
    Report,
    Row,
    as_json,
    ask_lastword,
    ask_stock,
    markdown,
    play_endings,
)
from lastword.demo._screen import Screen, Table
from lastword.demo._servers import DemoError, engine, sidecar, started

BEGIN: Final = "<!-- made by `make demo`: begin -->"
END: Final = "<!-- made by `make demo`: end -->"

# Faults of the embedded engine (vLLM's own, and those of what stands between) that the second table shows.
FAULTS: Final = {
    "abort": "engine aborts in mid-answer: finish_reason abort, [DONE]",
    "abort-queued": "engine aborts before the first token: [DONE] alone",
    "nothing": "engine falls out of the stream: clean end",
    "error-200": "status 200 with an error as JSON",
    "late-error": "status 200, then an error event, then [DONE]",
    "cut": "the application dies in mid-stream",
}
_OURS_SHIMMED: Final = "lastword, behind shim"
QUESTION: Final = "Tell me in two sentences what a lighthouse is for."


@contextlib.contextmanager
def words(screen: Screen, command: str | None, name: str) -> Iterator[tuple[str, str]]:
    """Run the engine that ``command`` starts behind the sidecar; yield the sidecar's base URL and what it is.

    Where it does not start, and where there is no command, the embedded engine speaks.
    """
    with contextlib.ExitStack() as children:
        upstream = None
        if command is not None:
            try:
                upstream, what = children.enter_context(started(command)), name
            except DemoError as error:
                screen.prose(f"{error}")
                screen.prose("The embedded engine, which has no model, speaks in its place.")
                screen.say()
        if upstream is None:
            upstream, what = children.enter_context(engine("--pace", "0.03", "--bare")), "the embedded engine"
        yield children.enter_context(sidecar(upstream)), f"{what} behind `lastword shim`"


def stream_one(screen: Screen, base_url: str, model: str | None, what: str) -> None:
    """Stream an answer word by word, then say how it ended."""
    try:
        client = Client(base_url=base_url, api_key="demo")
    except ValueError as error:
        raise DemoError(str(error)) from error
    began = time.monotonic()
    screen.prose(f"1. One stream through the SDK, from {what}")
    screen.say()
    messages = [{"role": "user", "content": QUESTION}]
    create = client.chat.completions.create
    if model is None:
        model = client.models.list().data[0].id
    with client, create(model=model, messages=messages, max_tokens=64, temperature=0, stream=True) as stream:
        for chunk in stream:
            for choice in chunk.choices:
                screen.flow(choice.delta.content or "")
    screen.flowed()
    outcome = stream.outcome
    assert outcome is not None
    reason = outcome.finish_reasons.get(0)
    screen.say(f"\n   last word: {outcome.outcome}, finish_reason {reason}, {time.monotonic() - began:.1f} s,")
    screen.say(f"   request {outcome.request_id}\n")


def show_endings(screen: Screen, header: Sequence[str], rows: Iterator[Row]) -> list[Row]:
    """Print the table as its rows come to be known."""
    screen.prose("2. The same endings, played to two clients from a raw socket: what did they report?")
    screen.say()
    table = Table(screen, header)
    shown: list[Row] = []
    for row in rows:
        colours = ["", *(_colour(row, client) for client in row.reports)]
        table.row([row.ending, *(report.said for report in row.reports.values())], colours)
        shown.append(row)
    screen.say()
    screen.prose(NOTE)
    screen.say()
    return shown


def show_faults(screen: Screen, rows: Iterator[Row]) -> list[Row]:
    """Print what each pair of client and server made of each fault."""
    screen.say("3. Faults of an engine, bare and behind the shim\n")
    shown: list[Row] = []
    for row in rows:
        screen.prose(row.ending, indent="   ")
        for client, report in row.reports.items():
            screen.say(f"     {client:<24}{screen.paint(report.said, _colour(row, client))}")
        shown.append(row)
    screen.say()
    return shown


def summary(stock: str, rows: Sequence[Row]) -> str:
    """Count what was silent, and apart from it what is broken by the contract's choice only."""
    broken = [row for row in rows if row.broken]
    plain = [row for row in broken if row.id != BY_CHOICE]
    counts = {client: sum(row.silent(client) for row in plain) for client in ("stock", "lastword")}
    chosen = sum(row.silent("stock") for row in broken) - counts["stock"]
    by_choice = f", and {chosen} by the contract's choice (1)" if chosen else ""
    return (
        f"Reported as complete, of {len(broken)} broken endings: {stock} {counts['stock']}{by_choice}; "
        f"lastword {sum(row.silent('lastword') for row in broken)}."
    )


def _colour(row: Row, client: str) -> str:
    if row.silent(client):
        return "31"
    return "32" if row.reports[client].complete != row.broken else "33"


def play_faults(bare: str, shimmed: str) -> Iterator[Row]:
    """Ask the embedded engine for each of its faults, bare and behind the shim."""
    for name, label in FAULTS.items():
        headers = {"x-demo-ending": name}
        reports: dict[str, Report] = {
            "openai, bare engine": ask_stock(bare, model="embedded", headers=headers),
            "openai, behind shim": ask_stock(shimmed, model="embedded", headers=headers),
            _OURS_SHIMMED: ask_lastword(shimmed, model="embedded", headers=headers),
        }
        yield Row(name, label, broken=True, reports=reports)


def run(arguments: argparse.Namespace) -> int:
    """Play everything; the exit status."""
    if arguments.markdown not in (None, "-"):
        _parts(arguments.markdown)  # before ten seconds are spent on it
    stock = f"openai {version('openai')}"
    screen = Screen(sys.stderr if arguments.json or arguments.markdown else sys.stdout)
    faults: list[Row] = []
    with contextlib.ExitStack() as children:
        if arguments.base_url is None:
            with words(screen, arguments.engine, arguments.engine_name) as (base_url, what):
                stream_one(screen, base_url, arguments.model, what)
        else:
            stream_one(screen, arguments.base_url, arguments.model, arguments.base_url)
        clients = {"stock": ask_stock, "lastword": ask_lastword}
        header = ["ending", stock, "lastword"]
        endings = show_endings(screen, header, play_endings(clients))
        if arguments.base_url is None:
            bare = children.enter_context(engine("--pace", "0.002", "--bare"))
            shimmed = children.enter_context(engine("--pace", "0.002"))
            faults = show_faults(screen, play_faults(bare, shimmed))
    screen.prose(summary(stock, endings))
    if arguments.json:
        result = {"openai": version("openai"), "endings": as_json(endings), "faults": as_json(faults)}
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
    if arguments.markdown:
        _write_markdown(arguments.markdown, markdown(header, endings) + f"\n{NOTE}\n")
    wrong = [row for row in endings if row.reports["lastword"].complete == row.broken]
    wrong += [row for row in faults if row.silent(_OURS_SHIMMED)]
    return 1 if wrong else 0


def _write_markdown(target: str, table: str) -> None:
    if target == "-":
        sys.stdout.write(table)
        return
    before, after = _parts(target)
    try:
        Path(target).write_text(f"{before}{BEGIN}\n{table}{END}{after}", encoding="utf-8")
    except OSError as error:
        raise DemoError(f"{target} cannot be written: {error.strerror}") from error


def _parts(target: str) -> tuple[str, str]:
    """Give what stands before and after the table of a page; raises ``DemoError`` if it has no place for one."""
    try:
        text = Path(target).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DemoError(f"{target} cannot be read: {error}") from error
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise DemoError(f"{target} needs the two lines {BEGIN} and {END}, once each; the table goes between them")
    before, _, rest = text.partition(BEGIN)
    return before, rest.partition(END)[2]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lastword.demo", description=__doc__.partition("\n")[0])
    parser.add_argument("--base-url", help="stream from this server, and show no faults of the embedded engine")
    parser.add_argument(
        "--engine",
        metavar="CMD",
        help="stream from the server that this starts; it must say `ready URL` and end with its standard input",
    )
    parser.add_argument("--engine-name", metavar="TEXT", default="the engine", help="what to call that")
    parser.add_argument("--model", help="the model's name there (default: the first that it lists)")
    parser.add_argument("--json", action="store_true", help="the result as JSON on standard output")
    parser.add_argument(
        "--markdown",
        nargs="?",
        const="-",
        metavar="FILE",
        help="the table, to standard output or between FILE's markers",
    )
    return parser.parse_args(argv)


def _interrupt(signum: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if lastword was right about every ending, 1 if not, 2 if something could not run.

    130 is an interrupt, 141 a reader of the output that has left, as shells have it.
    """
    arguments = _arguments(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"  # the stock client obeys proxy settings
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a model may say what this terminal cannot show
    try:
        return run(arguments)
    except (DemoError, LastwordError) as error:
        sys.stderr.write(f"demo: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\ndemo: interrupted; nothing is left running\n")
        return 130
    except BrokenPipeError:  # whoever read this has seen enough (`| head`)
        discard(sys.stdout, sys.stderr)
        return 128 + signal.SIGPIPE


if __name__ == "__main__":
    sys.exit(main())
