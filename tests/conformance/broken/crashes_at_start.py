"""Does not get as far as start."""

raise ImportError("no module named client_library")
