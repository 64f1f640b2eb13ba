"""Writes a line that never ends to stdout."""

import sys

from loop import Message, serve


def play(message: Message) -> None:
    while True:
        sys.stdout.write(65_536 * "x")


serve(play)
