"""What is said of an attribute that this vLLM does not have."""

from __future__ import annotations

import logging
from typing import Final

_log: Final = logging.getLogger("lastword_shim")


def missing(attribute: str, consequence: str) -> None:
    """One line for what is switched off by it."""
    _log.error("this vLLM has no %s: %s", attribute, consequence)
