"""From a vector's call to the bytes of a request, for the server at hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from lastword._completeness import expected_choices
from lastword._url import shown_url
from lastword.conformance._cases import API_KEY
from lastword.conformance._results import ConformanceError

_PATHS: Final = {
    "chat": "/v1/chat/completions", "completions": "/v1/completions", "models": "/v1/models",
    "responses": "/v1/responses", "messages": "/v1/messages",
}  # fmt: skip
_QUESTION: Final = "Count from one to one hundred."
_LONG_WITHOUT_CONTEXT: Final = 1500  # tokens
_RESERVE: Final = 160  # tokens of the context that a long answer leaves to the prompt and its template
_MEBIBYTE: Final = "0123456789abcdef" * 65536


@dataclass(frozen=True, slots=True)
class Target:
    """The server under test, and what has to be known to ask it.

    ``context`` is the most tokens of prompt and answer together, None if nobody told; ``extra`` are members that every
    generation gets beside the vector's, such as ``{"ignore_eos": true}``.
    """

    host: str
    port: int
    tls: bool = False
    prefix: str = ""
    model: str = ""
    api_key: str = API_KEY
    context: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Without a path."""
        return f"http{'s' if self.tls else ''}://{self.address}{self.prefix}"

    def without_key(self, text: str) -> str:
        """The text with the key left out, unless it is the one that everybody knows."""
        return text if self.api_key in (API_KEY, "") else text.replace(self.api_key, "$key")

    @property
    def address(self) -> str:
        """``host:port``, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it goes out, and what of it the judge has to know."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    stream: bool
    choices: int
    judged: bool  # an answer that is generated, and no list of models
    endpoint: str
    request_id: str | None

    @property
    def wire(self) -> bytes:
        """The bytes."""
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        return f"{self.method} {self.path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + self.body

    @property
    def title(self) -> str:
        """A line for people."""
        return f"{self.method} {self.path}{', stream' if self.stream else ''}"


def read_url(url: str) -> tuple[str, int, bool, str]:
    """Host, port, whether TLS, and the path before ``/v1``; ``ConformanceError`` if it is no http address."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConformanceError(
            f"--url {shown_url(url)}: it is no URL; give an address such as http://127.0.0.1:8000"
        ) from None
    sound = url.isascii() and url.isprintable() and " " not in url and port != 0
    if parts.scheme not in ("http", "https") or not host or not sound or parts.query or parts.fragment:
        raise ConformanceError(f"--url {shown_url(url)}: an address such as http://127.0.0.1:8000 is needed")
    if "@" in parts.netloc:
        raise ConformanceError("--url: it has a name or a password: a key is given with --api-key")
    tls = parts.scheme == "https"
    return host, port or (443 if tls else 80), tls, parts.path.rstrip("/").removesuffix("/v1")


def request_of(target: Target, call: Mapping[str, Any], case_id: str) -> Request:
    """Build a call's request."""
    endpoint = call.get("endpoint", "chat")
    method = call.get("method", "GET" if endpoint == "models" else "POST")
    document = _document(target, call, endpoint)
    body = b""
    if method not in ("GET", "HEAD", "OPTIONS"):
        body = call["raw"].encode() if "raw" in call else json.dumps(document).encode()
    headers: dict[str, str | None] = {
        "host": target.address,
        **({"content-type": "application/json", "content-length": str(len(body))} if body else {}),
        "authorization": f"Bearer {target.api_key}",
        "x-request-id": f"case.{case_id.replace('/', '.')}",
        "x-conformance-case": case_id,
    }
    headers.update({name.lower(): value for name, value in call.get("headers", {}).items()})
    sent = tuple((name, value) for name, value in headers.items() if value is not None)
    return Request(
        method,
        target.prefix + call.get("path", _PATHS[endpoint]),
        sent,
        body,
        stream=bool(call["stream"]),
        choices=expected_choices(document),
        judged=endpoint != "models" and "path" not in call and method == "POST",
        endpoint=endpoint,
        request_id=headers["x-request-id"],
    )


def _document(target: Target, call: Mapping[str, Any], endpoint: str) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if endpoint in ("completions", "responses"):
        asked = {"prompt" if endpoint == "completions" else "input": _QUESTION}
    elif endpoint != "models":
        asked = {"messages": [{"role": "user", "content": _QUESTION}]}
    length = "max_output_tokens" if endpoint == "responses" else "max_tokens"
    document = {"model": target.model, **asked, "stream": call["stream"], length: 16, **target.extra}
    document.update(_filled(call.get("body", {}), target))
    return {name: value for name, value in document.items() if name not in call.get("without", ())}


def _filled(value: Any, target: Target) -> Any:
    """Put in what a vector cannot know."""
    if isinstance(value, Mapping):
        return {name: _filled(each, target) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, target) for each in value]
    if value == "$beyond":
        return (target.context or 0) + 1
    if value == "$long":
        return target.context - _RESERVE if target.context and target.context > 2 * _RESERVE else _LONG_WITHOUT_CONTEXT
    if isinstance(value, str) and "$" in value:
        # Every tokenizer makes at least one token of a word and its blank.
        return value.replace("$overflow", "word " * (2 * (target.context or 0))).replace("$mebibyte", _MEBIBYTE)
    return value
