"""Answers with JSON that is no object."""

from loop import serve

serve(lambda message: print("[1, 2]", flush=True))
