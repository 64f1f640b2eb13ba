"""Is ended by a signal that has no name."""

import os
import signal

from loop import serve

serve(lambda message: os.kill(os.getpid(), signal.SIGRTMIN + 6))
