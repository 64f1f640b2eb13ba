"""The server side of lastword: one ASGI middleware that gives every request exactly one honest last word.

In vLLM: ``vllm serve MODEL --middleware lastword_shim.Shim``; before any other server: ``lastword shim --upstream URL``.
Both are configured by ``LASTWORD_*`` variables (`Settings`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lastword_shim._asgi import Shim
    from lastword_shim._settings import Settings

__all__ = ["Settings", "Shim"]


def __getattr__(name: str) -> Any:
    """Import what is asked for: the command line lists its commands without loading a server."""
    if name == "Shim":
        from lastword_shim._asgi import Shim

        return Shim
    if name == "Settings":
        from lastword_shim._settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
