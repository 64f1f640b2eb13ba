"""Makes the call, and never says what came of it."""

import time

from loop import Message, call, serve


def play(message: Message) -> None:
    call(message["case"])
    time.sleep(600)


serve(play)
