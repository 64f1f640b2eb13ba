"""Reports every answer as a whole one."""

from loop import answer, say, serve

serve(lambda message: say(answer(message)))
