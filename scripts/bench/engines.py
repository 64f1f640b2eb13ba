"""Real vLLM for the bench: the same engine bare and with the shim, up at the same time, asked in turns."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.live.vllm_server import VllmServer

import engine_env
from bench import BenchError
from setup_steps import SetupError

Say = Callable[[str], None]
SEQUENCES = 64
"""``--max-num-seqs``: streams that the engine serves at a time."""


def paths(*, smollm2: bool) -> dict[str, str]:
    """Where the cached vLLM and its models are; SmolLM2, which `make engine` does not make, is made if it is not there.

    Raises:
        BenchError: vLLM has not been made, or SmolLM2 cannot be.
    """
    try:
        found = engine_env.ensure(smollm2=False, check_only=True)
        if smollm2:
            found = engine_env.ensure(smollm2=True, check_only=False)
    except SetupError as error:
        raise BenchError(str(error)) from error
    return {name: path for name, path in found.items() if path}


@contextlib.contextmanager
def both(say: Say, model: str = "tiny") -> Iterator[dict[str, VllmServer]]:
    """A bare server and one with the shim; ``model`` is tiny or smollm2.  6 GB of memory.

    Raises:
        BenchError: one did not start.
    """
    found = paths(smollm2=model == "smollm2")
    servers: dict[str, VllmServer] = {}
    with tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder:
        try:
            for name in ("bare", "shim"):
                place = Path(folder) / name
                place.mkdir()
                args = ("--max-num-seqs", str(SEQUENCES))
                servers[name] = VllmServer(found, place, shim=name == "shim", args=args, model=model)
            say(f"starting vLLM twice, bare and with the shim ({model})")
            for server in servers.values():
                server.wait_ready(lambda _: None)
                server.step_back()  # callers stand for other machines
            yield servers
        except RuntimeError as error:
            raise BenchError(str(error)) from error
        finally:
            for server in servers.values():
                server.stop(gently=False)
