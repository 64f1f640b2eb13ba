"""Real vLLM for the bench: one server that answers bare or with the shim, as each request asks."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.conformance.servers import vllm
from tests.live.vllm_server import VllmServer

import engine_env
from bench import BenchError
from bench.either import HEADER
from setup_steps import SetupError

Say = Callable[[str], None]
SEQUENCES = 64
"""``--max-num-seqs``: streams that the engine serves at a time."""
WAYS = {"bare": f"{HEADER}: 1\r\n", "shim": ""}
"""What a request says in its head to be served in either way."""


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
def engine(say: Say, model: str = "tiny") -> Iterator[VllmServer]:
    """The server, with records, since whoever mounts the shim wants them; ``model`` is tiny or smollm2.

    Raises:
        BenchError: it did not start.
    """
    found = paths(smollm2=model == "smollm2")
    packages = os.pathsep.join([vllm.PACKAGES, str(vllm.ROOT / "scripts")])
    args = ("--max-num-seqs", str(SEQUENCES), "--middleware", "bench.either.Either")
    with tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder:
        env = {"PYTHONPATH": packages, "LASTWORD_RECORDS": str(Path(folder) / "records.jsonl")}
        say(f"starting vLLM ({model})")
        server = VllmServer(found, Path(folder), shim=False, args=args, env=env, model=model)
        try:
            server.wait_ready(lambda _: None)
            server.step_back()  # callers stand for other machines
            yield server
        except RuntimeError as error:
            raise BenchError(str(error)) from error
        finally:
            server.stop(gently=False)
