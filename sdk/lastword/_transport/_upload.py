"""Sending a large body to a server that may refuse it before it has read it all.

A gateway answers 413 to the head of a request and then reads on, closes, or does neither.  Whoever only writes finds a broken
connection, sends it all again, or waits until a timer ends it; the answer lies unread.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
from typing import Any, Final

PIECE: Final = 64 * 1024
"""How much is sent between two looks, in bytes.  What fits into one piece is sent without a look."""

LOOK_SECONDS: Final = 0.05
"""How often to look while the server does not read on."""


def has_answered(sock: Any) -> bool:
    """Whether a final status line lies ready on ``sock``, which is not read; or the end of the connection.

    Always false under TLS, where what lies ready may be a session ticket.  An informational status is no answer (RFC 9110
    §15.2).
    """
    if sock is None or isinstance(sock, ssl.SSLSocket) or sock.fileno() < 0 or not is_readable(sock):
        return False
    try:
        copy = socket.socket(fileno=os.dup(sock.fileno()))  # what an event loop shows of a socket cannot be read
    except OSError:
        return False  # no descriptor is free to look with
    with copy:
        try:
            start = copy.recv(10, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:
            return True  # reset: reading on is what tells
    return not start or (start.startswith(b"HTTP/1.") and len(start) == 10 and start[9:10] != b"1")


def is_readable(sock: Any) -> bool:
    """Whether a read would return at once."""
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))
