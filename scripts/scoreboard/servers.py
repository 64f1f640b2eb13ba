"""The servers of the scoreboard: what each is started with, and what it is declared to have.

The name of each is that of its report (docs/conformance/server-NAME.json), of its known failures
(tests/conformance/known/server-NAME.txt; all with the shim share server-shim.txt) and of its line in `commands`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import environments

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "conformance" / "servers"
KNOWN = ROOT / "tests" / "conformance" / "known"
USUAL = "completions,choices"
DIALECTS = "responses,messages"
ALL = f"{USUAL},{DIALECTS},tools,keys,deadline,timers,admission"
LIMITS = {"FIRST_TOKEN_TIMEOUT": 3, "IDLE_TIMEOUT": 2.5, "TOTAL_TIMEOUT": 7, "MAX_INFLIGHT": 8, "MAX_QUEUED": 8}
FULL_LENGTH = ("--extra-body", '{"ignore_eos": true}')  # real engines must not be done before a client can leave
SMOL = "SmolLM2-135M, 2048 tokens of context"
TINY = "a model of two layers with random weights, 8192 tokens of context"


def commands() -> dict[str, Callable[[], list[str]]]:
    """By name: what makes a server's environment if need be, and gives the arguments that play it."""
    return {
        "relay": relay,
        "sidecar": sidecar,
        "vllm": partial(vllm, f"vllm serve on a CPU, {TINY}."),
        "vllm-shim": partial(vllm, f"vllm serve --middleware lastword_shim.Shim on a CPU, {TINY}.", shim=True),
        "llama-cpp": llama_cpp,
        "litellm-proxy": litellm_proxy,
    }


def relay() -> list[str]:
    note = "A reverse proxy of fifty lines that changes nothing."
    arguments = [*about("A bare relay", "", note, f"{USUAL},{DIALECTS},tools,keys", "relay"), "--context", "2048"]
    return [*arguments, "--", sys.executable, str(SCRIPTS / "relay.py"), "{port}", "{upstream}"]


def sidecar(*, limits: bool = True) -> list[str]:
    """``limits`` are the settings that the suite's `timers` and `admission` ask for."""
    note = "lastword shim --upstream: the shim round a reverse proxy of its own."
    has = ALL if limits else f"{USUAL},{DIALECTS},tools,keys,deadline"
    arguments = [*about("lastword sidecar", "", note, has, "shim"), "--context", "2048"]
    command = [sys.executable, "-m", "lastword.cli", "shim", "--upstream", "{upstream}", "--port", "{port}"]
    settings = [f"LASTWORD_{name}={value}" for name, value in LIMITS.items()] if limits else []
    return [*arguments, "--", "env", *settings, *command, "--shutdown-timeout", "1"]


def vllm(note: str, *, shim: bool = False) -> list[str]:
    import engine_env  # here: environments has said where it is

    version = str(engine_env.ensure(smollm2=False, check_only=False)["vllm_version"])
    has = f"{USUAL},{DIALECTS},keys" + (",deadline,admission" if shim else "")
    arguments = about("vLLM with the shim" if shim else "vLLM", version, note, has, "shim" if shim else "vllm")
    command = [sys.executable, str(SCRIPTS / "vllm.py"), "{port}", *(["--shim"] if shim else [])]
    return [*arguments, *FULL_LENGTH, "--", *command]


def llama_cpp() -> list[str]:
    note = f"llama.cpp's server as xllamacpp starts it, {SMOL}. Its own reaction to SIGTERM does not show there."
    arguments = about("llama.cpp", pinned("llama-cpp", "xllamacpp"), note, f"{USUAL},tools,keys,-shutdown", "llama-cpp")
    command = [python_of("llama-cpp"), str(SCRIPTS / "llama_cpp.py"), "{port}", "--key", "key-of-the-vectors"]
    return [*arguments, *FULL_LENGTH, "--answer-limit", "90", "--", *command]


def litellm_proxy() -> list[str]:
    version = pinned("litellm-proxy", "litellm")
    note = "LiteLLM's proxy without a database, in front of the scripted engine as an OpenAI-compatible provider; no retries."
    arguments = about("LiteLLM proxy", version, note, f"{USUAL},tools", "litellm-proxy")
    command = [python_of("litellm-proxy"), str(SCRIPTS / "litellm_proxy.py"), "{port}", "{upstream}"]
    return [*arguments, "--", *command]


def about(name: str, version: str, note: str, has: str, known: str) -> list[str]:
    """The options that say who it is, what it has and what it is known to fail."""
    return [
        *("--name", name, "--server-version", version, "--note", note, "--capabilities", has),
        *("--expected-failures", str(KNOWN / f"server-{known}.txt")),
    ]


def python_of(environment: str) -> str:
    """The interpreter of an environment, which is made if need be."""
    return str(environments.ready(environment))


def pinned(environment: str, package: str) -> str:
    """The version of a package in an environment's pins."""
    pins = (ROOT / "scripts" / "scoreboard" / "pins" / f"{environment}.txt").read_text(encoding="utf-8")
    found = re.search(rf"^{package}==(\S+)$", pins, re.MULTILINE)
    assert found is not None, f"{environment}.txt does not pin {package}"
    return found[1]
