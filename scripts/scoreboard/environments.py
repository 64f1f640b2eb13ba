#!/usr/bin/env python3
"""Make the environment of one implementation of the scoreboard, or do nothing if it is already right.

    scripts/scoreboard/environments.py NAME          make it if need be, and print its interpreter's path
    scripts/scoreboard/environments.py --pin NAME    look up what its packages bring with them, and write the pins anew

They live in ``${XDG_CACHE_HOME:-~/.cache}/lastword/scoreboard/NAME`` and are made again when the pins change or the
interpreter no longer starts.  Names and packages are in implementations.toml.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "environment"))

from cached import cache_root, is_complete, mark_complete, recipe, works
from setup_steps import SetupError, end_on_sigterm, only_one_run, run

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
ADAPTERS = ROOT / "tests" / "conformance" / "adapters"
JAVA = ROOT / "java-compat"
# What an adapter for Node finds beside it as in the checkout: modules are looked for from the file upwards, so the
# environment has a copy of these.
COPIED = ("tests/conformance/adapters/*.mjs", "contract/dialects.json", "contract/registry.json")
QUIETLY = ("install", "--no-input", "--progress-bar", "off")
NPM: tuple[str, ...] = ("npm", "--no-audit", "--no-fund", "--ignore-scripts")


def table() -> dict[str, Any]:
    """What implementations.toml says."""
    return tomllib.loads((HERE / "implementations.toml").read_text(encoding="utf-8"))


def is_node(name: str) -> bool:
    """Whether the packages of this environment are npm's."""
    return bool(table()["environments"][name]["language"] == "javascript")


def command_of(environment: str, adapter: str, *arguments: str) -> list[str]:
    """The command that starts an adapter in its environment, which is made if need be."""
    if environment == "development":
        return [sys.executable, str(ADAPTERS / adapter), *arguments]
    interpreter = ready(environment)
    place = _folder(environment) / "tests/conformance/adapters" if adapter.endswith(".mjs") else ADAPTERS
    return [str(interpreter), str(place / adapter), *arguments]


def java_command_of(module: str, *arguments: str) -> list[str]:
    """The command that starts an adapter of java-compat, which is built first."""
    _build_java()
    (jar,) = (JAVA / module / "target").glob("lastword-*.jar")
    home = os.environ.get("JAVA_HOME")  # as Maven takes its own
    java = _tool(str(Path(home) / "bin/java") if home else "java", "a JDK 17 or newer")
    return [java, "-jar", str(jar), *arguments]


@functools.cache
def _build_java() -> None:
    log = cache_root() / "scoreboard" / "java.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    build: list[str | Path] = [_tool("mvn", "Maven 3.8.7 or newer"), "-q", "-B", "-f", JAVA / "pom.xml", "package"]
    run([*build, "-DskipTests", "-Dmaven.javadoc.skip=true"], label="build java-compat", log=log)


def _tool(name: str, what: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SetupError(f"the clients for Java need {what} (Debian: openjdk-17-jdk-headless, maven)")
    return found


def ready(name: str) -> Path:
    """Make the environment if need be; the interpreter's path (for Node: that of the machine).

    Raises:
        SetupError: the name is unknown, a tool is missing, or an installer failed.
    """
    environments = table()["environments"]
    if name not in environments:
        raise SetupError(f"no environment is called {name!r}; there are {', '.join(environments)}")
    return _ready_node(name) if is_node(name) else _ready_python(name)


def _folder(name: str) -> Path:
    return cache_root() / "scoreboard" / name


def _ready_python(name: str) -> Path:
    folder, pins = _folder(name), HERE / "pins" / f"{name}.txt"
    wanted = recipe(pins.read_text(encoding="utf-8"), sys.version_info[:2])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with only_one_run(folder.with_name(f"{name}.lock")):
        if not (is_complete(folder, wanted) and works(folder)):
            log = _fresh(folder)
            run([sys.executable, "-m", "venv", folder], label=f"make the environment {name}", log=log)
            pip = [str(folder / "bin" / "python"), "-m", "pip", *QUIETLY, "--no-deps"]
            run([*pip, "--requirement", pins], label=f"install its packages ({pins.name})", log=log)
            mark_complete(folder, wanted)
    return folder / "bin" / "python"


def _ready_node(name: str) -> Path:
    node, npm = (shutil.which(tool) for tool in ("node", "npm"))
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout if node else "none"
    if node is None or npm is None or int((re.findall(r"\d+", version) or ["0"])[0]) < 20:
        raise SetupError(
            f"{name} needs Node 20 or newer with npm (node: {version.strip()}; Debian: apt-get install npm)"
        )
    folder, pins = _folder(name), HERE / "node" / name
    wanted = recipe((pins / "package-lock.json").read_text(encoding="utf-8"), version)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with only_one_run(folder.with_name(f"{name}.lock")):
        if not is_complete(folder, wanted):
            log = _fresh(folder)
            shutil.copytree(pins, folder)
            run([*NPM, "--prefix", folder, "ci"], label=f"install {name}", log=log)
            mark_complete(folder, wanted)
        for source in (path for pattern in COPIED for path in ROOT.glob(pattern)):
            target = folder / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return Path(node)


def _fresh(folder: Path) -> Path:
    """Clear the folder; the path of its log, emptied."""
    shutil.rmtree(folder, ignore_errors=True)
    log = folder.with_name(f"{folder.name}.log")
    log.write_bytes(b"")
    return log


def pin(name: str) -> None:
    """Write down every version that the environment's packages come with today."""
    entry = table()["environments"][name]
    packages = entry["packages"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        if is_node(name):
            pins = HERE / "node" / name
            pins.mkdir(parents=True, exist_ok=True)
            wanted = dict(package.rsplit("@", 1) for package in packages)
            text = json.dumps({"name": name, "private": True, "dependencies": wanted}, indent=2)
            (pins / "package.json").write_text(text + "\n", encoding="utf-8")
            (pins / "package-lock.json").unlink(missing_ok=True)
            run([*NPM, "--prefix", pins, "install", "--package-lock-only"], label=f"look {name} up", log=log)
            return
        venv = Path(folder) / "venv"
        run([sys.executable, "-m", "venv", venv], label="make an environment to look into", log=log)
        pip: list[str | Path] = [venv / "bin" / "python", "-m", "pip"]
        alone = ["--no-deps"] if entry.get("without_requirements") else []
        run([*pip, *QUIETLY, *alone, *packages], label=f"install {name}", log=log)
        frozen = subprocess.run([*pip, "freeze", "--local"], capture_output=True, text=True, check=True).stdout
        (HERE / "pins" / f"{name}.txt").write_text(frozen, encoding="utf-8")


def main() -> int:
    """Exit status: 0 ready, 1 something is missing or failed, 130 interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="an environment of implementations.toml")
    parser.add_argument("--pin", action="store_true", help="look the versions up anew")
    options = parser.parse_args()
    end_on_sigterm()
    try:
        if options.pin:
            pin(options.name)
        else:
            print(ready(options.name))
    except SetupError as error:
        print(f"environments: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("environments: interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
