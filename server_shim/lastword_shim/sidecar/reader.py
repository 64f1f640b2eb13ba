"""What comes on a caller's connection, as requests: httptools, and what it leaves to be wished for."""

from __future__ import annotations

from typing import Any, Final, Protocol

import httptools

from lastword._classify import ErrorInfo
from lastword_shim.protocol.wire import Headers
from lastword_shim.sidecar.clock import BODY, HEAD
from lastword_shim.sidecar.head import RequestHead, read_head
from lastword_shim.sidecar.refused import malformed, too_long

_WEBSOCKET: Final = b"websocket"


class Listener(Protocol):
    """Who hears of it; in this order, but for the last two, which are followed by nothing."""

    def head(self, head: RequestHead) -> None:
        """A request's head."""

    def body(self, data: bytes) -> None:
        """Part of its body."""

    def whole(self) -> None:
        """The end of its body."""

    def handshake(self, head: RequestHead) -> None:
        """A head that asks for a WebSocket."""

    def unreadable(self, error: ErrorInfo) -> None:
        """What came is no request, or no body, that can be read."""


class Reader:
    """``most`` is how many bytes may come that make no head whole and are no body; None: any number.

    ``part`` is what it is in the midst of, ``deaf`` tells that nothing more is to be understood.
    """

    def __init__(self, listener: Listener, *, most: int | None, websockets: bool) -> None:
        self._listener = listener
        self._most = most
        self._websockets = websockets
        self._parser = self._new_parser()
        self._transport: Any = None
        self._state: dict[str, Any] = {}
        self._fields: Headers = []
        self._barren = 0  # bytes since there was a head or part of a body
        self._upgrading: RequestHead | None = None
        self._skipping = False  # what the parser tells is of a head that is known
        self.target = b""
        self.part = HEAD
        self.silent = True
        self.deaf = False

    def begin(self, transport: Any, state: dict[str, Any]) -> None:
        """What scopes are made of."""
        self._transport, self._state = transport, state

    def feed(self, data: bytes) -> None:
        """Bytes have come."""
        self.silent = False
        self._barren += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse(malformed(self.part or HEAD))
        if self._most is not None and self._barren > self._most:
            self._refuse(too_long(HEAD if self.part != BODY else "body's framing", self._most))

    def _feed(self, data: bytes) -> None:
        while data and not self.deaf:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as wish:
                head, self._upgrading = self._upgrading, None
                if head is None:
                    return
                if self._is_handshake(head):
                    self._listener.handshake(head)
                    self.deaf = True
                    return
                data = data[wish.args[0] :]
                self._overlook(head)
            else:
                return

    def _overlook(self, head: RequestHead) -> None:
        """Go on behind a head that asked for an upgrade as if it had not (RFC 9110 §7.8), for its body was skipped."""
        self._parser = self._new_parser()
        if head.framing:
            self._skipping = True
            self._parser.feed_data(b"POST / HTTP/1.1\r\n" + head.framing + b"\r\n\r\n")
            self._skipping = False

    def _new_parser(self) -> httptools.HttpRequestParser:
        parser = httptools.HttpRequestParser(self)
        if hasattr(parser, "set_dangerous_leniencies"):  # a request behind one that closes is dropped, and no mistake
            parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _is_handshake(self, head: RequestHead) -> bool:
        return self._websockets and head.upgrade == _WEBSOCKET

    def _refuse(self, error: ErrorInfo) -> None:
        if not self.deaf:
            self.deaf = True
            self._listener.unreadable(error)

    # What the parser calls.

    def on_message_begin(self) -> None:
        """The first byte of a head."""
        if not (self.deaf or self._skipping):
            self.target, self._fields, self.part, self._barren = b"", [], HEAD, 0

    def on_url(self, url: bytes) -> None:
        """Part of the target."""
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head; one of the trailers is dropped."""
        if self.part == HEAD:
            self._fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is whole."""
        if self.deaf or self._skipping:
            return
        head = read_head(self._parser, self.target, self._fields, self._transport, self._state)
        if head is None:
            self._refuse(malformed(HEAD))
            return
        self._fields, self.part, self._barren = [], BODY, 0
        if self._parser.should_upgrade():
            self._upgrading = head
        if self._upgrading is None or not self._is_handshake(head):
            self._listener.head(head)

    def on_body(self, body: bytes) -> None:
        """Part of the body."""
        self._barren = 0
        if not self.deaf:
            self._listener.body(body)

    def on_message_complete(self) -> None:
        """The body is whole, unless the parser has skipped it."""
        head = self._upgrading
        if not self.deaf and (head is None or not (head.framing or self._is_handshake(head))):
            self.part = ""
            self._listener.whole()
