"""How hypothesis runs here: no per-example deadline on shared machines, nothing written into the checkout."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unit", deadline=None, database=None, max_examples=200)
settings.load_profile("unit")
