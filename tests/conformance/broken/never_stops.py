"""Stays when it is told to stop, and when its stdin ends."""

import time

from loop import answer, say, serve

serve(lambda message: say(answer(message)))
time.sleep(600)
