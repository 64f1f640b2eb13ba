"""Leaves a child behind with its own stdout still open, in the middle of a case and at the end."""

import os
import subprocess
import sys

from loop import Message, serve


def play(message: Message) -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    os._exit(3)


serve(play)
