"""How deep a JSON body is nested, found before it is parsed: parsers recurse, and what stops them should be a number."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Final

from lastword._classify import ErrorInfo, make_error
from lastword._codes import Code

MAX_DEPTH: Final = 128
"""Objects and lists inside of each other; the schemas of tools, which nest deepest, have some ten levels."""
# One that is never closed goes to the end: a pattern that fails there would be tried anew at each quote in it.
_STRINGS: Final = re.compile(rb'"[^"]*(?:"|\Z)')
_NOTHING_ELSE: Final = bytes(set(range(256)) - set(b'[]{}"'))
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def too_deep(body: bytes) -> ErrorInfo | None:
    """An error if the body is nested deeper than `MAX_DEPTH`."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return None
    encoding = json.detect_encoding(body)
    if encoding not in {"utf-8", "utf-8-sig"}:
        body = body.decode(encoding, "replace").encode("utf-8", "replace")
    without_escapes = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = _STRINGS.sub(b"", without_escapes.translate(None, _NOTHING_ELSE))
    if max(accumulate(map(_STEP.__getitem__, brackets)), default=0) <= MAX_DEPTH:
        return None
    message = f"The request body is nested more than {MAX_DEPTH} levels deep."
    return make_error(Code.INVALID_REQUEST_ERROR, message, origin="shim", details={"max_depth": MAX_DEPTH})
