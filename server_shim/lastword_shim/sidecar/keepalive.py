"""A peer whose host vanished without a word."""

from __future__ import annotations

import socket
from typing import Any, Final

_OPTIONS: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


def watch_peer(found: Any) -> None:
    """Let the system notice that, after a minute; what a listening socket accepts is watched likewise."""
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _OPTIONS:
        if hasattr(socket, option):
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
