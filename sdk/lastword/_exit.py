"""What the end of the process and a fork mean for clients.

The process exits when main returns: calls still waiting in other threads are cancelled then.  A forked child has copies of
the parent's sockets: it must neither use them nor shut them down.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 (its own exit hook joins the workers: ours must be registered later, to run first)
import os
import threading
import weakref
from contextlib import suppress
from typing import Any, Protocol


class _Cancellable(Protocol):
    def _cancel_all(self) -> None: ...


class _Disownable(Protocol):
    def _disown(self) -> None: ...


_clients: weakref.WeakSet[Any] = weakref.WeakSet()
_owners: weakref.WeakSet[Any] = weakref.WeakSet()


def close_at_exit(client: _Cancellable) -> None:
    """Cancel the client's calls when the main thread ends."""
    _clients.add(client)


def disown_in_children(client: _Disownable) -> None:
    """Let a forked child leave the client's calls and connections to its parent."""
    _owners.add(client)


def _cancel_all() -> None:
    for client in list(_clients):
        with suppress(Exception):
            client._cancel_all()


def _disown_all() -> None:
    for client in list(_owners):
        with suppress(Exception):
            client._disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)

# atexit runs only after every non-daemon thread has ended, and a thread that waits for a silent server never ends.  The
# hook before that is the one concurrent.futures uses.
getattr(threading, "_register_atexit", atexit.register)(_cancel_all)
