"""The prompts of embeddings, scores and whatever else vLLM pools: they have no tokens to follow, but a length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm.exceptions import VLLMValidationError

from lastword_shim.engine import Refusal, current
from lastword_shim.engine.vllm.missing import missing


class Poolings:
    """Wraps ``encode`` of one AsyncLLM, ``client``."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def attach(self) -> None:
        """Wrap what is there to be wrapped."""
        if callable(getattr(self._client, "encode", None)):
            self._original_encode = self._client.encode
            self._client.encode = self._encode
        else:
            missing("encode", "prompts of embeddings are measured by their size")

    def _encode(self, prompt: Any, *args: Any, **options: Any) -> Any:
        """In place of ``AsyncLLM.encode``, which is asked for each prompt of a request before any has begun.

        Raises:
            VLLMValidationError: there is no room for so many tokens now; vLLM answers it as it does its own.
        """
        outputs = self._original_encode(prompt, *args, **options)
        ticket, length = current(), prompt_length(prompt)
        if ticket is not None and length is not None:
            try:
                ticket.admit(length, max_model_len=None)
            except Refusal as refused:
                raise VLLMValidationError(str(refused), parameter="input", value=length) from refused
        return outputs


def prompt_length(prompt: Any) -> int | None:
    """Tokens of a rendered prompt: ``prompt_token_ids`` or ``prompt_embeds``, the decoder's of an encoder-decoder."""
    if isinstance(prompt, Mapping) and prompt.get("type") == "enc_dec":
        prompt = prompt.get("decoder_prompt")
    for name in ("prompt_token_ids", "prompt_embeds"):
        value = prompt.get(name) if isinstance(prompt, Mapping) else getattr(prompt, name, None)
        if value is not None:
            return len(value)
    return None
