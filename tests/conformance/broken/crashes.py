"""Dies of a signal in every case, after a word on stderr."""

import os
import signal
import sys

from loop import Message, serve


def play(message: Message) -> None:
    print("the library fell over", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGABRT)


serve(play)
