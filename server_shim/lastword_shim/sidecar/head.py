"""What a request's head says, once the parser has it."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass
from typing import Any

import httptools

from lastword_shim.protocol.wire import Headers, Scope


@dataclass(frozen=True, slots=True)
class RequestHead:
    """``framing`` is the field that promises a body, empty where none does; ``upgrade`` what the client wants to go on in."""

    scope: Scope
    framing: bytes
    upgrade: bytes
    expects: bool
    keep_alive: bool

    @property
    def may_be_a_websocket(self) -> bool:
        """Whether its handshake is one, as far as we look."""
        plain = self.scope["method"] == "GET" and self.scope["http_version"] == "1.1" and not self.framing
        return plain and any(name == b"sec-websocket-key" for name, _ in self.scope["headers"])


def read_head(
    parser: httptools.HttpRequestParser, target: bytes, fields: Headers, transport: Any, state: dict[str, Any]
) -> RequestHead | None:
    """The head; None where its target is none that can be served."""
    version, method = parser.get_http_version(), parser.get_method().decode("latin-1")
    try:
        parsed = httptools.parse_url(target)
        raw_path: bytes = parsed.path or b"/"
        path = raw_path.decode("ascii")
    except (httptools.HttpParserError, UnicodeDecodeError):
        return None
    if method == "CONNECT":  # this is no forward proxy
        return None
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": version,
        "method": method,
        "scheme": "http",
        "path": urllib.parse.unquote(path) if "%" in path else path,
        "raw_path": raw_path,
        "query_string": parsed.query or b"",
        "root_path": "",
        "headers": fields,
        "client": _address(transport, "peername"),
        "server": _address(transport, "sockname"),
        "state": state.copy(),
    }
    values, current = dict(fields), version == "1.1"
    length, coding = values.get(b"content-length", b"").strip(b" \t"), values.get(b"transfer-encoding")
    framing = b"content-length: " + length if length.strip(b"0") else b""
    if coding is not None:
        if coding.strip().lower() != b"chunked":  # what else it were coded with nobody here undoes
            return None
        framing = b"transfer-encoding: " + coding
    return RequestHead(
        scope,
        framing,
        values.get(b"upgrade", b"").strip().lower() if parser.should_upgrade() else b"",
        expects=current and values.get(b"expect", b"").lower() == b"100-continue",
        keep_alive=current and parser.should_keep_alive(),
    )


def _address(transport: Any, which: str) -> tuple[str, int] | None:
    found = transport.get_extra_info(which)
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) else None
