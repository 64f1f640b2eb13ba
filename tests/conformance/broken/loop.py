"""What the broken adapters share: the protocol spoken well, and a client that knows no more than HTTP.

Each of the others does one thing wrong, so that a test can show that the runner notices it. None of them is an example.
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

WARM_UP = 2  # plain good exchanges that a process is given before its first case
COMPLETED = {"outcome": "completed", "code": None, "text": "Hello"}
HELLO = {"protocol": 1, "name": "broken", "version": "0", "language": "python"}
CAPABILITIES = ["cancel", "retry"]

Message = Mapping[str, Any]


def say(message: Message) -> None:
    print(json.dumps(message), flush=True)


def post(case: Message) -> http.client.HTTPResponse:
    """Send the request, and give the response with its body still to be read."""
    url = urlsplit(case["base_url"])
    connection = http.client.HTTPConnection(url.netloc)
    connection.request(
        "POST", f"{url.path}/chat/completions{case.get('query', '')}", json.dumps(case["call"]["request"])
    )
    return connection.getresponse()


def call(case: Message) -> dict[str, Any]:
    """Make the call; whatever came is a whole answer."""
    post(case).read()
    return COMPLETED


def answer(message: Message) -> dict[str, Any]:
    return {"seq": message["seq"], "result": call(message["case"])}


def serve(play: Callable[[Message], None], *, hello: Message = HELLO) -> None:
    """Answer start, do the warm-up well, and leave every case to ``play``, which is to say the answer itself."""
    for line in sys.stdin:
        message = json.loads(line)
        if message["cmd"] == "start":
            say({"capabilities": CAPABILITIES, **hello})
        elif message["cmd"] == "stop":
            return
        elif message["seq"] <= WARM_UP:
            say(answer(message))
        else:
            play(message)
