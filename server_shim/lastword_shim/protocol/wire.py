"""Names that everything which touches the wire shares: ASGI's types, and the protocols that a route may speak."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

CHAT, COMPLETIONS, RESPONSES, MESSAGES, OTHER = "chat", "completions", "responses", "messages", "other"
