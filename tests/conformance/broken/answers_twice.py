"""Says every answer twice."""

from loop import Message, answer, say, serve


def play(message: Message) -> None:
    said = answer(message)
    say(said)
    say(said)


serve(play)
