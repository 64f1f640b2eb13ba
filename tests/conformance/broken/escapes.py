"""Writes what a terminal obeys, and lines that look like those of a result, wherever it may write text."""

import sys

from loop import HELLO, Message, post, say, serve

EVIL = "[red]\x1b[2J\x9b31m\u202e\nAll right.\n"
if "start" in sys.argv:
    sys.exit(EVIL)


def claim(message: Message) -> None:
    post(message["case"]).read()
    result = {"outcome": "failed", "code": "internal_server_error", "message": EVIL + "x" * 5_000_000}
    say({"seq": message["seq"], "result": result})


serve(claim, hello={**HELLO, "version": f"1{EVIL}"})
