#!/usr/bin/env python3
"""Play the conformance suite against the implementations of the scoreboard, and write its reports and pages anew.

    make scoreboard                        all of them
    make scoreboard ONLY=openai-python     one; several with commas between, and * for any characters
    make scoreboard ONLY=clients           or servers: all of them

Each runs through the command that its authors would use, ``lastword conformance client --report … -- ADAPTER``.  One that
fails, as most do, stops nothing.  A suite or an adapter that does not work stops everything (exit 2): what it would report
is no result.  Everything that was printed is in ``${XDG_CACHE_HOME:-~/.cache}/lastword/scoreboard/KIND-NAME.out``.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import environments  # first: it says where the next ones are
import servers

from cached import cache_root
from setup_steps import SetupError, end_on_sigterm

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "docs" / "conformance"
# Proxies of the machine are not asked for the way to a server on it.
ENVIRONMENT = {**os.environ, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost", "DO_NOT_TRACK": "1"}


class Tested(NamedTuple):
    """One report: of a client or a server, and what comes after the options that all have."""

    kind: str
    name: str
    arguments: Callable[[], list[str]]

    @property
    def report(self) -> Path:
        return REPORTS / f"{self.kind}-{self.name}.json"

    def matches(self, pattern: str) -> bool:
        return fnmatch.fnmatchcase(self.name, pattern) or pattern == f"{self.kind}s"


def everything() -> list[Tested]:
    """All clients of implementations.toml, and all servers."""
    table = environments.table()
    tested = [
        Tested("client", name, functools.partial(adapter, *command)) for name, command in table["clients"].items()
    ]
    tested += [Tested("client", name, functools.partial(jar, *command)) for name, command in table["java"].items()]
    return tested + [Tested("server", name, arguments) for name, arguments in servers.commands().items()]


def adapter(*command: str) -> list[str]:
    return ["--", *environments.command_of(*command)]


def jar(*command: str) -> list[str]:
    return ["--", *environments.java_command_of(*command)]


def chosen(only: str) -> list[Tested]:
    """Those that ONLY names; all if it is empty.

    Raises:
        SetupError: a name or pattern matches nothing.
    """
    tested, patterns = everything(), [each.strip() for each in only.split(",") if each.strip()] or ["*"]
    for pattern in patterns:
        if not any(each.matches(pattern) for each in tested):
            raise SetupError(f"ONLY={pattern}: there is {', '.join(each.name for each in tested)}; clients, servers")
    return [each for each in tested if any(each.matches(pattern) for pattern in patterns)]


def play(tested: Tested) -> int:
    """Play one, and say what came of it; the exit status of the suite."""
    output = cache_root() / "scoreboard" / f"{tested.kind}-{tested.name}.out"
    command = [str(Path(sys.executable).with_name("lastword")), "conformance", tested.kind, "--quiet"]
    argv = [*command, "--report", str(tested.report), *tested.arguments()]
    started = time.monotonic()
    with (
        open(output, "wb") as sink,
        subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=ENVIRONMENT) as suite,
    ):
        try:
            status = patiently(suite)
        except KeyboardInterrupt:
            suite.terminate()  # it ends what it started
            raise
    if status in (0, 1):
        print(f"      {summary(tested.report)} ({time.monotonic() - started:.0f} s)", flush=True)
    else:
        tail = output.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
        print("\n".join([f"the suite did not work (exit {status}):", *tail]), file=sys.stderr)
    return status


def patiently(suite: subprocess.Popen[bytes]) -> int:
    """Wait, and say once a minute that it goes on; the exit status."""
    minutes = 0
    while True:
        try:
            return suite.wait(timeout=60)
        except subprocess.TimeoutExpired:
            minutes += 1
            print(f"      … {minutes} min", flush=True)


def summary(report: Path) -> str:
    said = json.loads(report.read_text(encoding="utf-8"))
    counts = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in said["totals"].items() if count)
    who = f"{said['implementation']['name']} {said['implementation']['version']}".rstrip()
    return f"{who}: {counts}"


def play_all(tested: Iterable[Tested]) -> int:
    """Play each; the status of the first that did not work, else 0."""
    every = list(tested)
    REPORTS.mkdir(parents=True, exist_ok=True)
    (cache_root() / "scoreboard").mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(every, 1):
        print(f"{number:2}/{len(every)} {each.kind} {each.name}", flush=True)
        status = play(each)
        if status not in (0, 1):
            return status
    return 0


def main() -> int:
    """Exit status: 0 played and written, 1 an environment cannot be made, 2 the suite did not work, 130 interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAMES", help="names or patterns, with commas between")
    options = parser.parse_args()
    end_on_sigterm()
    started = time.monotonic()
    try:
        status = play_all(chosen(options.only))
    except SetupError as error:
        print(f"scoreboard: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("scoreboard: interrupted", file=sys.stderr)
        return 130
    if status:
        return status
    status = subprocess.run(
        [sys.executable, ROOT / "scripts" / "generate.py"], stdin=subprocess.DEVNULL, check=False
    ).returncode
    print(
        f"the scoreboard is in docs/conformance.md and docs/conformance.html ({time.monotonic() - started:.0f} s in all)"
    )
    return 2 if status else 0


if __name__ == "__main__":
    sys.exit(main())
