"""Reports its first cases as whole ones, and then hangs; notes that it does in the file $TIRED, for who waits for that."""

import os
import time
from itertools import count
from pathlib import Path

from loop import Message, answer, say, serve

_LAST = 6
_numbers = count(1)


def play(message: Message) -> None:
    said = answer(message)
    if next(_numbers) > _LAST:
        Path(f"{os.environ['TIRED']}.{os.getpid()}").touch()
        time.sleep(600)
    say(said)


serve(play)
