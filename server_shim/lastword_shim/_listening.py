"""How a program that serves begins and ends: a socket, the line that says that it takes requests, and standard input."""

from __future__ import annotations

import contextlib
import errno
import socket
import sys
import threading
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from uvicorn import Server

BACKLOG: Final = 2048


class ListenError(Exception):
    """Nothing can listen there; the message says why, and what can be done."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one.

    Raises:
        ListenError: there is none.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        reason = str(getattr(error, "strerror", None) or error).partition(" (while")[0]  # Python adds the address again
        another = getattr(error, "errno", errno.EADDRINUSE) == errno.EADDRINUSE
        remedy = "; --port takes another, 0 any free one" if another else ""
        raise ListenError(f"cannot listen on {host} port {port}: {reason}{remedy}") from None


def say_ready(host: str, listener: socket.socket, *, where: TextIO | None) -> None:
    """Write ``ready URL``, for people and for whoever has started the program; to nobody if that is closed."""
    host = host or listener.getsockname()[0]  # an empty one is all addresses
    shown = f"[{host}]" if ":" in host else host
    if where is not None:  # as Python has it where there is none
        with contextlib.suppress(OSError):
            where.write(f"ready http://{shown}:{listener.getsockname()[1]}/v1\n")
            where.flush()


def end_with_stdin(server: Server) -> None:
    """Stop the server once standard input ends, as it does when whoever started it has died."""

    def wait() -> None:
        sys.stdin.buffer.read()
        server.should_exit = True

    threading.Thread(target=wait, daemon=True).start()
