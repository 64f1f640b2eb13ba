"""Makes the call, and never says what came of it. Notes that it hangs in the file $HANGING, for who waits for that."""

import os
import time
from pathlib import Path

from loop import Message, call, serve


def play(message: Message) -> None:
    call(message["case"])
    if noted := os.environ.get("HANGING"):
        Path(f"{noted}.{os.getpid()}").touch()
    time.sleep(600)


serve(play)
