#!/usr/bin/env python3
"""Make a virtual environment with this checkout installed in it, or do nothing if it is already right.

    scripts/environment/dev_env.py .venv --extra shim --extra conformance --group test --group lint
    scripts/environment/dev_env.py .venv-demo --extra shim

The environment is made again when its interpreter no longer starts, and installed into again when pyproject.toml, the
pinned versions (scripts/dev_constraints.txt), the wanted extras and groups or the checkout's own place have changed.
Only Python's standard library is needed to start it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from setup_steps import SetupError, end_on_sigterm, only_one_run, run, say

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = Path(__file__).with_name("dev_constraints.txt")
STAMP = ".complete.json"
PIP = "pip>=25.1"  # the first that knows dependency groups
# What pip's log says when it got no answer; its last word is then that no version of the package exists.
UNREACHABLE = ("connection broken by", "Could not fetch URL", "Failed to establish", "Max retries exceeded")


def recipe(extras: list[str], groups: list[str]) -> dict[str, object]:
    """Everything that decides what is in the environment."""
    sources = b"".join(path.read_bytes() for path in (ROOT / "pyproject.toml", CONSTRAINTS))
    return {
        "checkout": str(ROOT),
        "extras": sorted(extras),
        "groups": sorted(groups),
        "sources": hashlib.sha256(sources).hexdigest(),
    }


def starts(venv: Path) -> bool:
    """Whether the environment's interpreter runs, and runs pip."""
    argv = [str(venv / "bin" / "python"), "-c", "import pip"]
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def stamped(venv: Path) -> object:
    try:
        return json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def require_python() -> None:
    """Raises: SetupError naming what this Python lacks."""
    if sys.version_info < (3, 11):  # noqa: UP036  (this file is what runs on an older one to say so)
        raise SetupError(f"Python 3.11 or newer is needed; this is {platform.python_version()} ({sys.executable})")
    if importlib.util.find_spec("ensurepip") is None:  # Debian splits it off, and venv fails late and oddly without it
        raise SetupError("Python's venv module is needed (Debian: apt-get install python3-venv)")


def install(venv: Path, extras: list[str], groups: list[str]) -> None:
    """Make the environment if there is none that works, and install the checkout (editable) with what was asked for."""
    log = venv.with_name(venv.name + ".log")
    log.write_bytes(b"")
    if not starts(venv):
        shutil.rmtree(venv, ignore_errors=True)
        run([sys.executable, "-m", "venv", venv], label=f"make {venv.name}", log=log)
    (venv / STAMP).unlink(missing_ok=True)
    pip: list[str | Path] = [venv / "bin" / "python", "-m", "pip", "install", "--no-input", "--progress-bar", "off"]
    pip += ["--disable-pip-version-check", "--constraint", CONSTRAINTS]
    package = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    wanted = [part for group in groups for part in ("--group", f"{ROOT / 'pyproject.toml'}:{group}")]
    try:
        run([*pip, "--upgrade", PIP], label="upgrade pip", log=log)
        run([*pip, "--editable", package, *wanted], label=f"install the packages into {venv.name}", log=log)
    except SetupError as error:
        text = log.read_text(encoding="utf-8", errors="replace")
        if not any(sign in text for sign in UNREACHABLE):
            raise
        raise SetupError(
            f"{error}\n\nThe package index could not be reached: is there a network? Another index is set with "
            "PIP_INDEX_URL, a proxy with HTTPS_PROXY. Then run the same command again."
        ) from error
    log.unlink()


def main() -> int:
    """Exit status: 0 ready, 1 something is missing or failed, 130 interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("venv", type=Path, help="the environment's folder")
    parser.add_argument("--extra", action="append", default=[], help="an optional dependency set of lastword")
    parser.add_argument("--group", action="append", default=[], help="a dependency group of pyproject.toml")
    options = parser.parse_args()
    venv = options.venv.absolute()
    wanted = recipe(options.extra, options.group)
    if stamped(venv) == wanted and starts(venv):
        return 0
    end_on_sigterm()
    try:
        require_python()
        with only_one_run(venv.with_name(venv.name + ".lock")):
            if stamped(venv) == wanted and starts(venv):
                return 0
            install(venv, options.extra, options.group)
            (venv / STAMP).write_text(json.dumps(wanted) + "\n", encoding="utf-8")
        say(f"{venv.name} is ready")
    except SetupError as error:
        print(f"dev_env: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("dev_env: interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
