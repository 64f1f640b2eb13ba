"""Has a word of its own for a whole answer."""

from loop import COMPLETED, answer, say, serve

serve(lambda message: say({**answer(message), "result": {**COMPLETED, "outcome": "done"}}))
