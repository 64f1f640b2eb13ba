"""The request of one exchange: who it says it is, its body, and its way in."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from lastword._classify import ErrorInfo, is_request_id
from lastword_shim.admission.refusals import (
    Refusal,
    asleep,
    declared_length,
    head_too_large,
    lost_in_upgrade,
    read_deadline,
    shutting_down,
    too_large,
    upgraded,
)
from lastword_shim.engine import Ticket
from lastword_shim.exchange.credential import digest, secrets_in
from lastword_shim.exchange.entry import Entry
from lastword_shim.protocol.ask import Ask
from lastword_shim.protocol.depth import too_deep
from lastword_shim.protocol.private import Secrets
from lastword_shim.protocol.routes import route_of
from lastword_shim.protocol.wire import OTHER, Message, Receive, Scope, by_name, path_of

if TYPE_CHECKING:
    from lastword_shim._core import Core

_OURS: Final = frozenset({b"x-request-id"})
_HIDDEN: Final = _OURS | {b"accept-encoding"}
"""Not sent inwards on routes whose answers are read; to those none is to be compressed."""
_PLAIN: Final = (b"accept-encoding", b"identity")
_LARGE: Final = 256 * 1024
"""Bytes of a body that is looked at in a thread of its own, so that others have their turn meanwhile."""


class ClientLeft(Exception):
    """The connection closed before the request was whole."""


class Inbound:
    """One request."""

    def __init__(self, core: Core, scope: Scope, receive: Receive) -> None:
        self._core = core
        self._scope = scope
        self._receive = receive
        self.headers = by_name(scope["headers"])
        self.request_id = request_id_of(self.headers)
        # Retries share the client's id; the engine must be able to tell them apart.
        self.inward_id = f"{self.request_id}-{secrets.token_hex(4)}"
        clamp = core.settings.context_policy == "clamp"
        self.secrets = Secrets(secrets_in(scope["headers"]))
        self.ticket = Ticket(self.request_id, self.inward_id, clamp=clamp, secrets=self.secrets)
        self.attempt = self._attempt()
        self.credential = digest(scope["headers"])
        self.path = path_of(scope)
        self.route = route_of(scope["method"], self.path)
        self.ask = Ask.before_body(self.route)
        self._deadline = read_deadline(self.headers.get("request-timeout-ms"))
        self.deadline_ms = self._deadline if isinstance(self._deadline, int) else None
        self._content_type = self.headers.get("content-type", "")
        self._size = 0
        self._first: Message | None = None
        self.entry = Entry(core, self.ticket, self.headers, self.deadline_ms)

    @property
    def generates(self) -> bool:
        """Whether it makes the engine generate, in a protocol that the shim can follow."""
        return self.ask.judged

    @property
    def works(self) -> bool:
        """Whether it makes the engine work, for a generation or for something else."""
        return self.ask.works

    def inward_scope(self) -> Scope:
        """The scope for the application: with our id, and without what could send a body past us or hide it from us.

        The application has it before it asks for the body, and so before the wait for a place: the caller's deadline in it
        is that of the receipt.  The sidecar, which sends it over a wire, takes off what has passed by then.
        """
        scope = dict(self._scope)
        hidden, added = (_HIDDEN, [_PLAIN]) if self._is_looked_at else (_OURS, [])
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in hidden]
        scope["headers"] = [*headers, *added, (b"x-request-id", self.inward_id.encode())]
        scope["extensions"] = {}
        return scope

    def head_fault(self) -> ErrorInfo | None:
        """An error if the head is larger than is let in; that is told before anybody has to read it."""
        limit = self._core.settings.max_header_bytes
        size = sum(len(name) + len(value) for name, value in self._scope["headers"])
        size += len(self._scope.get("raw_path") or self._scope["path"]) + len(self._scope.get("query_string", b""))
        return head_too_large(size, limit) if limit is not None and size > limit else None

    async def lost_body(self) -> ErrorInfo | None:
        """An error if the server has lost the body already.

        What still comes of it the server takes for another request, which it refuses on the same connection: who is to
        hear the cause has to hear it before, so nothing is waited for here.
        """
        if not (self._is_looked_at and lost_in_upgrade(self.headers)):
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                self._first = await self._receive()
        return upgraded() if self._first is not None and _is_empty(self._first) else None

    @property
    def _is_looked_at(self) -> bool:
        return self.works or self.route.speaks != OTHER

    @property
    def is_read_whole(self) -> bool:
        """Whether the body must be looked at before the application has it: a generation's, and JSON for the engine."""
        return self.generates or (self.works and "json" in self._content_type.lower())

    async def read(self) -> tuple[bytes, bool]:
        """The whole body, and that no more comes.

        Raises:
            Refusal: it is not to be let in.
            ClientLeft: it never came.
        """
        parts, more = bytearray(), True
        while more:
            part, more = await self.part()
            parts += part
        body = bytes(parts)
        self.secrets.read(body)
        looked = self._look(body) if len(body) < _LARGE else await asyncio.to_thread(self._look, body)
        if isinstance(looked, ErrorInfo):
            raise Refusal(looked)
        self.ask = looked
        return body, False

    def _look(self, body: bytes) -> Ask | ErrorInfo:
        return too_deep(body) or Ask.read(self.route, body, self._content_type)

    async def part(self) -> tuple[bytes, bool]:
        """The next part of the body as the server has it, and whether more comes; raises as `read` does."""
        first, self._first = self._first, None
        message = first or await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        part, more = bytes(message.get("body", b"")), bool(message.get("more_body", False))
        self._size += len(part)
        if not self.is_read_whole:
            self.secrets.read(part)
        limit = self._core.settings.max_body_bytes
        if limit is not None and self._size > limit:
            raise Refusal(too_large(limit))
        if _is_empty(message) and not self._size and lost_in_upgrade(self.headers):
            raise Refusal(upgraded())
        return part, more

    def check_the_head(self) -> None:
        """Before the body is read.

        Raises:
            Refusal: it is not to be let in.
        """
        core, limit = self._core, self._core.settings.max_body_bytes
        if core.drain.draining:
            raise Refusal(shutting_down())
        if isinstance(self._deadline, ErrorInfo):
            raise Refusal(self._deadline)
        if limit is not None and declared_length(self._scope["headers"]) > limit:
            raise Refusal(too_large(limit))
        self._check_the_engine()
        if self.works:
            self.entry.check()

    def _check_the_engine(self) -> None:
        """One that sleeps would keep it until it is woken; one that is paused is meant to."""
        engine = self._core.engine
        if self.works and engine is not None and engine.condition() == "asleep":
            raise Refusal(asleep())

    async def take_place(
        self, body: bytes, began: Callable[[], float | None], *, tells: bool, decided: asyncio.Future[Any]
    ) -> bool:
        """Wait for a place at the engine, if it needs one; whether it may go on.

        Raises:
            Refusal: there is none for it, or the engine has fallen asleep.
        """
        if self.works:
            place = self.entry.reserve(body, self._content_type, began, tells=tells, stream=self.ask.stream)
            await asyncio.wait([place.granted, decided], return_when=asyncio.FIRST_COMPLETED)
        if decided.done():
            self.entry.leave()
            return False
        self._check_the_engine()  # it may have fallen asleep meanwhile
        return True

    async def until_gone(self) -> None:
        """Return once the client has left; only after `read`."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _attempt(self) -> int:
        """From 1: ours (``x-request-attempt``), or what stock SDKs count from 0."""
        ours = self.headers.get("x-request-attempt", "")
        theirs = self.headers.get("x-stainless-retry-count", "")
        if ours.isascii() and ours.isdigit() and len(ours) < 7:
            return max(int(ours), 1)
        return int(theirs) + 1 if theirs.isascii() and theirs.isdigit() and len(theirs) < 7 else 1


def request_id_of(headers: Mapping[str, str]) -> str:
    """The caller's ``x-request-id`` if it is fit for a header and a log, else a new one."""
    given = headers.get("x-request-id", "")
    return given if is_request_id(given) else secrets.token_hex(16)


def _is_empty(message: Message) -> bool:
    """Whether it is the end of a body and nothing else."""
    return message["type"] == "http.request" and not message.get("body") and not message.get("more_body")
