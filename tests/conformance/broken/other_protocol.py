"""Speaks the protocol of some other year."""

from loop import CAPABILITIES, HELLO, serve

serve(print, hello={**HELLO, "capabilities": CAPABILITIES, "protocol": 2})
