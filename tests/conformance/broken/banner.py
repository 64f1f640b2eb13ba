"""Greets its user on stdout before it speaks the protocol."""

from loop import answer, say, serve

print("Welcome to broken 0!", flush=True)
serve(lambda message: say(answer(message)))
