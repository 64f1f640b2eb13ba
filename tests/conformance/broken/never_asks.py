"""Says that the server cannot be reached, and never tried."""

from loop import say, serve

FAILED = {"outcome": "failed", "code": "connection_failed"}
serve(lambda message: say({"seq": message["seq"], "result": FAILED}))
