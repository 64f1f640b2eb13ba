"""The overload experiment: what becomes of calls, and of the engine's work, at twice the load that it can take."""
