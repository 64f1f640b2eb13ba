#!/usr/bin/env python3
"""Run a command while an unmodified `vllm serve` answers, and end the server with it.

    scripts/environment/with_vllm.py [--model tiny|smollm2] [--no-shim] -- COMMAND...

`{base_url}` in the command becomes the server's URL (it ends in /v1); the model is called `m`. The exit status is the command's.
Run it with the development environment's interpreter; it uses the same server object as the live tests.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import engine_env
from setup_steps import SetupError, end_on_sigterm, say

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.live.vllm_server import VllmServer


def serve_and_run(command: list[str], *, model: str, shim: bool) -> int:
    """Start the server, run the command, end the server, whatever happened. Returns the command's exit status."""
    paths = {
        name: path for name, path in engine_env.ensure(smollm2=model == "smollm2", check_only=False).items() if path
    }
    with tempfile.TemporaryDirectory(prefix="lastword-vllm-") as folder:
        server = VllmServer(paths, Path(folder), shim=shim, model=model)
        try:
            say(f"starting vllm serve {model} (half a minute)")
            server.wait_ready(say)
            argv = [part.replace("{base_url}", server.base_url) for part in command]
            return subprocess.run(argv, check=False).returncode
        finally:
            if left := server.stop(gently=True):
                say(left)


def main() -> int:
    """Exit status: the command's; 1 when the server could not be started; 130 when interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("tiny", "smollm2"), default="tiny", help="which cached model")
    parser.add_argument("--no-shim", action="store_true", help="without lastword_shim.Shim")
    parser.add_argument("command", nargs="+", help="what to run, after --")
    options = parser.parse_args()
    end_on_sigterm()
    try:
        return serve_and_run(options.command, model=options.model, shim=not options.no_shim)
    except (SetupError, RuntimeError) as error:
        print(f"with_vllm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
