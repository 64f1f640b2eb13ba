"""Counts its answers in its own way."""

from loop import answer, say, serve

serve(lambda message: say({**answer(message), "seq": 4711}))
