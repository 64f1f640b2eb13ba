"""URLs as messages may show them."""

from __future__ import annotations

import re


def shown_url(url: str) -> str:
    """``url`` without what may be a secret: user and password, query and fragment."""
    return re.sub(r"(?s)[?#].*", "…", re.sub(r"(?s)^(\w+://)?.*@", r"\1…@", url))
