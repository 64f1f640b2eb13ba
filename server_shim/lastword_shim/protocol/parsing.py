"""JSON of any size, whoever sent it, without standing still longer than it takes to read."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """For as long as something is parsed, looked at and dropped again: nothing in JSON goes round in circles, and looking
    for circles in millions of small lists takes six times as long as making them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
