"""What an implementation said, without what differs from run to run: ports, addresses, generated ids, measured times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

_VOLATILE: Final = (
    (re.compile(r"(?<=127\.0\.0\.1)(:|', )\d{2,5}\b|(?<=localhost):\d{2,5}\b"), r":$port"),
    (re.compile(r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b", re.IGNORECASE), "$uuid"),
    (re.compile(r"\b0x[0-9a-f]{6,16}\b", re.IGNORECASE), "$address"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|milliseconds|s|sec|seconds)\b"), "$time"),
)


def steady(value: Any, known: str, generated: Mapping[str, str]) -> Any:
    """Give a JSON value with ``$…`` in place of what is volatile in it.

    ``known``      what the vector says: words of its own are left alone
    ``generated``  values that were made for this one call, and the names to put in their place
    """
    if isinstance(value, str):
        return _steady_text(value, known, generated)
    if isinstance(value, Mapping):
        return {name: steady(each, known, generated) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [steady(each, known, generated) for each in value]
    return value


def _steady_text(text: str, known: str, generated: Mapping[str, str]) -> str:
    for made, name in generated.items():
        text = text.replace(made, name)
    for pattern, name in _VOLATILE:
        text = pattern.sub(partial(_named, known=known, name=name), text)
    return text


def _named(match: re.Match[str], *, known: str, name: str) -> str:
    return match[0] if match[0] in known else name
