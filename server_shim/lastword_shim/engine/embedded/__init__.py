"""A small OpenAI-compatible engine without a model: it streams English words, and fails like the real ones on request.

For demonstrations and first steps: no download, no GPU, no framework. Run it behind the shim, or bare::

    python -m lastword_shim.engine.embedded --port 8000
    python -m lastword_shim.engine.embedded --port 8000 --bare

It answers ``/v1/chat/completions`` and ``/v1/completions`` (streamed or not, ``n``, several prompts, ``max_tokens``,
``stream_options.include_usage``, ``seed``), ``/v1/models``, ``/health`` and ``/metrics``. The request header
``x-demo-ending`` names how an answer is to end (``shapes.Ending``; ``--help`` lists them). What it says, its
faults included, is what vLLM 0.32 says; so is what it does when the client leaves: it stops.
"""

from lastword_shim.engine.embedded.app import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
