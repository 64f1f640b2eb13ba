"""Declares retry, and never sends a request again."""

from loop import Message, call, say, serve


def play(message: Message) -> None:
    call(message["case"])
    say({"seq": message["seq"], "result": {"outcome": "failed", "code": "rate_limit_exceeded"}})


serve(play)
