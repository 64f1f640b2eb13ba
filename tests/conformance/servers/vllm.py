"""Become an unmodified ``vllm serve`` of the tiny model, with or without the shim mounted.

    vllm.py PORT [--shim]

The environment is the one that scripts/environment/engine_env.py makes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
# An answer that fills tiny's context takes ten seconds, so that what is at work can be looked at on a busy machine too.
CONTEXT = {"tiny": 8192, "smollm2": 2048}
SIZE = ("--max-num-seqs", "8", "--enforce-eager")
# 32 full contexts of tiny, 20 of smollm2; all of it is written at the start, a second and more for a GiB.
KV_CACHE_BYTES = {"tiny": str(2**28), "smollm2": str(2**30)}
# What the shim is imported from.
PACKAGES = os.pathsep.join([str(ROOT / "sdk"), str(ROOT / "server_shim")])
# Enough for the suite's two loads to be too much; the engine itself takes eight at a time.
LIMITS = {"LASTWORD_MAX_INFLIGHT": "6", "LASTWORD_MAX_QUEUED": "4"}


def serve(paths: Mapping[str, str], model: str, port: int | str, *, shim: bool) -> list[str]:
    """The command; ``paths`` are what engine_env.py says, ``model`` is tiny or smollm2."""
    command = [paths["vllm"], "serve", paths[model], "--served-model-name", "m"]
    command += ["--load-format", "dummy"] if model == "tiny" else []
    command += [*SIZE, "--max-model-len", str(CONTEXT[model])]
    command += ["--kv-cache-memory-bytes", KV_CACHE_BYTES[model], "--host", "127.0.0.1", "--port", str(port)]
    return [*command, "--middleware", "lastword_shim.Shim"] if shim else command


def main() -> None:
    port, shim = sys.argv[1], "--shim" in sys.argv
    # The engine's busy loops take all cores there are; whoever measures needs a turn now and then.
    group = Path("/proc/self/autogroup")
    if group.exists():
        group.write_text("5", "utf-8")
    ask = [sys.executable, str(ROOT / "scripts" / "environment" / "engine_env.py"), "--check", "--json"]
    paths = json.loads(subprocess.run(ask, capture_output=True, check=True).stdout)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LASTWORD_", "VLLM_"))}
    environment |= SETTINGS
    environment |= {**LIMITS, "PYTHONPATH": PACKAGES} if shim else {}
    command = [*serve(paths, "tiny", port, shim=shim), "--api-key", "key-of-the-vectors"]
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main()
