"""Answers start, and nothing after that."""

import time

from loop import CAPABILITIES, HELLO, say

say({**HELLO, "capabilities": CAPABILITIES})
time.sleep(600)
