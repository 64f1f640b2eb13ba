"""Answers with very many times, each of them another."""

from loop import Message, post, say, serve


def count(message: Message) -> None:
    post(message["case"]).read()
    text = " ".join(f"{number} s" for number in range(30_000))
    say({"seq": message["seq"], "result": {"outcome": "completed", "code": None, "text": text}})


serve(count)
