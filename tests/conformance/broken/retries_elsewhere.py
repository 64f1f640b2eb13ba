"""Sends what was refused again, and counts in the query: no second request is like the first."""

from loop import Message, post, say, serve


def play(message: Message) -> None:
    case = message["case"]
    for query in ("", "?attempt=1", "?attempt=2"):
        post({**case, "query": query}).read()
    say({"seq": message["seq"], "result": {"outcome": "failed", "code": "unauthorized"}})


serve(play)
