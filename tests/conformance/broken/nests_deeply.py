"""Answers with JSON that is valid, and deeper than any reader's stack."""

import sys

from loop import Message, serve

DEPTH = int(sys.argv[1])


def nested(message: Message) -> None:
    inner = "[" * DEPTH + "]" * DEPTH
    print(
        f'{{"seq":{message["seq"]},"result":{{"outcome":"completed","code":null,"details":{{"x":{inner}}}}}}}',
        flush=True,
    )


serve(nested)
