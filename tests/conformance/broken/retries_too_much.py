"""Sends what was refused again, and again."""

from loop import Message, call, say, serve


def play(message: Message) -> None:
    for _ in range(3):
        call(message["case"])
    say({"seq": message["seq"], "result": {"outcome": "failed", "code": "unauthorized"}})


serve(play)
