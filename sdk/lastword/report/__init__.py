"""The account of recorded traffic: what was asked for, what came of it, and what was made for nobody (``lastword report``)."""
