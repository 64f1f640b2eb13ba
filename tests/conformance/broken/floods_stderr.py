"""Writes more to stderr than any pipe holds, and answers all the same."""

import sys

from loop import Message, answer, say, serve


def play(message: Message) -> None:
    for number in range(40_000):
        print(f"debug line {number}: " + 80 * "-", file=sys.stderr)
    say(answer(message))


serve(play)
