"""vLLM's middleware in the bench: the shim, and past it for a request that says so.

Both are measured in one process, because two processes of the same server differ by more than the shim: in the cores and
the memory that each happened to get, by a third and more.  What the shim has hooked into the engine stays there; without
an exchange of the shim's it hands over what the engine gives.
"""

from __future__ import annotations

from typing import Final

from lastword_shim import Shim
from lastword_shim.protocol.wire import App, Receive, Scope, Send

HEADER: Final = "x-bench-bare"


class Either:
    """Named by ``--middleware``."""

    def __init__(self, app: App) -> None:
        self._bare, self._shim = app, Shim(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        bare = scope["type"] == "http" and (HEADER.encode(), b"1") in scope["headers"]
        await (self._bare if bare else self._shim)(scope, receive, send)
