"""contract/profiles/draft.json: the ids of all vectors, until 1.0 is frozen as a list of its own."""

from __future__ import annotations

import json
from pathlib import Path

from .contract_files import Contract


def render(contract: Contract, vectors: Path) -> str:
    """The profile's text; `vectors` is the directory of vectors by kind."""
    ids = sorted(json.loads(path.read_text(encoding="utf-8"))["id"] for path in vectors.glob("*/*.json"))
    profile = {"$schema": "../schemas/profile.json", "contract": contract.version, "frozen": False, "vectors": ids}
    return json.dumps(profile, indent=2) + "\n"
