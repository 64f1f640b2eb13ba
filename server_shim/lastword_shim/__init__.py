"""The server side of lastword: one ASGI middleware that gives every request exactly one honest last word.

In vLLM: ``vllm serve MODEL --middleware lastword_shim.Shim``; configured by ``LASTWORD_*`` variables (`Settings`).
"""

from lastword_shim._asgi import Shim
from lastword_shim._settings import Settings

__all__ = ["Settings", "Shim"]
