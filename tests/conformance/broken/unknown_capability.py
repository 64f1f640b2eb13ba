"""Declares something that the contract does not know: mistyped, it would skip vectors in silence."""

from loop import HELLO, serve

serve(print, hello={**HELLO, "capabilities": ["retries"]})
