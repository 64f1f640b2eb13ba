"""Leaves in the middle of a case, without a word."""

import sys

from loop import serve

serve(lambda message: sys.exit(0))
