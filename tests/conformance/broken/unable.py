"""Cannot try anything."""

from loop import say, serve

serve(lambda message: say({"seq": message["seq"], "unable": "the library was built without HTTP"}))
