"""Adds a line of its own to every answer."""

from loop import Message, answer, say, serve


def play(message: Message) -> None:
    say(answer(message))
    print("that went well", flush=True)


serve(play)
