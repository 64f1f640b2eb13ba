"""Real vLLM for the bench: the same engine bare and with the shim, up at the same time, asked in turns."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.live.vllm_server import VllmServer

import engine_env
from bench import BenchError
from setup_steps import SetupError

Say = Callable[[str], None]
SEQUENCES = 64
"""``--max-num-seqs``: streams that the engine serves at a time."""


def paths() -> dict[str, str]:
    """Where the cached vLLM is.

    Raises:
        BenchError: it has not been made.
    """
    try:
        found = engine_env.ensure(smollm2=False, check_only=True)
    except SetupError as error:
        raise BenchError(str(error)) from error
    return {name: path for name, path in found.items() if path}


@contextlib.contextmanager
def both(say: Say, env: Mapping[str, str] | None = None) -> Iterator[dict[str, VllmServer]]:
    """A bare server and one with the shim, the latter with ``env``; 6 GB of memory.

    Raises:
        BenchError: one did not start.
    """
    servers: dict[str, VllmServer] = {}
    with tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder:
        try:
            for name in ("bare", "shim"):
                place = Path(folder) / name
                place.mkdir()
                args = ("--max-num-seqs", str(SEQUENCES))
                servers[name] = VllmServer(paths(), place, shim=name == "shim", args=args, env=env or {})
            say("starting vLLM twice, bare and with the shim")
            for server in servers.values():
                server.wait_ready(lambda _: None)
                server.step_back()  # callers stand for other machines
            yield servers
        except RuntimeError as error:
            raise BenchError(str(error)) from error
        finally:
            for server in servers.values():
                server.stop(gently=False)
