"""Has another version in each process."""

import os

from loop import HELLO, answer, say, serve

serve(lambda message: say(answer(message)), hello={**HELLO, "version": f"1.{os.getpid()}"})
