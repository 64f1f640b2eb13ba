"""Answers well, and leaves a child behind when it goes."""

import subprocess
import sys

from loop import answer, say, serve

subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
serve(lambda message: say(answer(message)))
