"""Leaves at its first case, and never starts again. Its argument is a file that it makes to remember that."""

import sys
from pathlib import Path

from loop import Message, serve

LEFT = Path(sys.argv[1])
if LEFT.exists():
    sys.exit(3)


def leave(message: Message) -> None:
    LEFT.touch()
    sys.exit(4)


serve(leave)
