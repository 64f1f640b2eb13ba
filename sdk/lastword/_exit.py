"""The process exits when main returns: calls still waiting in other threads are cancelled then."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 (its own exit hook joins the workers: ours must be registered later, to run first)
import threading
import weakref
from contextlib import suppress
from typing import Any, Protocol


class _Cancellable(Protocol):
    def _cancel_all(self) -> None: ...


_clients: weakref.WeakSet[Any] = weakref.WeakSet()


def close_at_exit(client: _Cancellable) -> None:
    """Cancel the client's calls when the main thread ends."""
    _clients.add(client)


def _cancel_all() -> None:
    for client in list(_clients):
        with suppress(Exception):
            client._cancel_all()


# atexit runs only after every non-daemon thread has ended, and a thread that waits for a silent server never ends.  The
# hook before that is the one concurrent.futures uses.
getattr(threading, "_register_atexit", atexit.register)(_cancel_all)
