"""The shim's own routes under ``/lastword/``: what is open, an end to it, and whether the server gets anywhere."""
