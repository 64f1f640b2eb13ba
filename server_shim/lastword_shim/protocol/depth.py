"""How deep a JSON body is nested, found before it is parsed: parsers recurse, and what stops them should be a number."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Final

from lastword._classify import ErrorInfo, make_error
from lastword._codes import Code

MAX_DEPTH: Final = 128
"""Objects and lists inside of each other; the schemas of tools, which nest deepest, have some ten levels."""
_NOTHING_ELSE: Final = bytes(set(range(256)) - set(b'[]{}"'))
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_SLICE: Final = 64 * 1024
"""Brackets and quotes that are looked at in one go: between them other threads have their turn."""


def too_deep(body: bytes) -> ErrorInfo | None:
    """An error if the body is nested deeper than `MAX_DEPTH`."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return None
    encoding = json.detect_encoding(body)
    if encoding not in {"utf-8", "utf-8-sig"}:
        body = body.decode(encoding, "replace").encode("utf-8", "replace")
    without_escapes = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if _depth(without_escapes.translate(None, _NOTHING_ELSE).replace(b'""', b"")) <= MAX_DEPTH:
        return None
    message = f"The request body is nested more than {MAX_DEPTH} levels deep."
    return make_error(Code.INVALID_REQUEST_ERROR, message, origin="shim", details={"max_depth": MAX_DEPTH})


def _depth(signs: bytes) -> int:
    """The deepest of brackets and quotes; what a quote opens goes on to the next one, or to the end."""
    deepest, depth, in_string = 0, 0, 0
    for start in range(0, len(signs), _SLICE):
        parts = signs[start : start + _SLICE].split(b'"')
        levels = list(accumulate(map(_STEP.__getitem__, b"".join(parts[in_string::2])), initial=depth))
        deepest, depth = max(deepest, *levels), levels[-1]
        in_string = (in_string + len(parts) - 1) % 2
    return deepest
