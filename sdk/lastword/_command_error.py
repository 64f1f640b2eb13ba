"""What any command of lastword's ends with where it cannot do what it is asked to."""

from __future__ import annotations


class CommandError(Exception):
    """It cannot be done; the message, a sentence, says why and what to do.  The exit status is 2."""
