"""What is said where a part of lastword lacks a package that an extra brings."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """For people.  No index has lastword before its release, so that a clone is what can be installed."""
    return f"pip install '.[{extra}]' in a clone of lastword"
