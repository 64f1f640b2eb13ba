"""Where cached environments live, and how one knows that it is whole and still the one that is wanted."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from pathlib import Path

STAMP = ".complete.json"


def cache_root() -> Path:
    """``$XDG_CACHE_HOME/lastword``, or ``~/.cache/lastword`` (also when the variable is empty or relative)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "lastword"


def recipe(*parts: object) -> str:
    """A short name for how something is made: a changed recipe makes a stamp stale."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]


def is_complete(folder: Path, wanted: str) -> bool:
    """Whether the folder's stamp is there and names this recipe."""
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(stamp, dict) and stamp.get("recipe") == wanted


def mark_complete(folder: Path, wanted: str) -> None:
    """Write the stamp, last and whole."""
    part = folder / (STAMP + ".part")
    part.write_text(json.dumps({"recipe": wanted, "python": platform.python_version()}) + "\n", encoding="utf-8")
    os.replace(part, folder / STAMP)


def works(venv: Path) -> bool:
    """Whether the environment's interpreter still starts: it dies with the Python that it was made from."""
    argv = [str(venv / "bin" / "python"), "-c", ""]
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
