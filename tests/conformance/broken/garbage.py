"""Prints what is no JSON where an answer belongs."""

from loop import serve

serve(lambda message: print("\x1b[31mdone!", flush=True))
