"""Says that a stream was cancelled, and goes on holding its socket."""

from loop import Message, post, say, serve

held: list[object] = []


def play(message: Message) -> None:
    response = post(message["case"])
    held.append(response)
    response.read(64)
    say({"seq": message["seq"], "result": {"outcome": "cancelled", "code": "cancelled", "text": "Hello"}})


serve(play)
