"""Whose a request is, without keeping the key."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import Final

_CARRIERS: Final = (b"authorization", b"x-api-key", b"api-key")  # OpenAI's and HTTP's; Anthropic's; Azure's
_LEAST_SECRET: Final = 8  # characters
_SALT: Final = secrets.token_bytes(16)  # of this process: a digest that leaked opens nothing and matches nowhere else


def digest(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The same 16 bytes for the same credentials within one process; requests without any share theirs."""
    state = hashlib.blake2b(key=_SALT, digest_size=16)
    for name, value in sorted((name.lower(), value) for name, value in headers):
        if name in _CARRIERS:
            state.update(b"%d:%s=%d:%s" % (len(name), name, len(value), value))
    return state.digest()


def is_named(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether there are credentials at all."""
    return any(name.lower() in _CARRIERS for name, _ in headers)


def secrets_in(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, ...]:
    """The credentials themselves, so that they can be struck out of what others say; short ones are words like others."""
    found = []
    for name, value in headers:
        secret = value.decode("latin-1").rpartition(" ")[2]
        if name.lower() in _CARRIERS and len(secret) >= _LEAST_SECRET:
            found.append(secret)
    return tuple(found)
