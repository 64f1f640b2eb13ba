"""What everything that touches the wire shares: ASGI's types and how to read them, and the protocols of routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

CHAT, COMPLETIONS, RESPONSES, MESSAGES, OTHER = "chat", "completions", "responses", "messages", "other"


def path_of(scope: Scope) -> str:
    """The path that routes are known by: without the prefix that the application is mounted under (``root_path``)."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def by_name(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names in lower case; of several of one name the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
