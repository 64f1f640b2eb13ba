#!/usr/bin/env python3
"""Write everything that derives from contract/: run it after each change there.

    scripts/generate.py            write the files
    scripts/generate.py --check    write nothing; exit 1 and name the files that are stale

Sources: contract/VERSION, registry.json, dialects.json, SPEC.md, schemas and vectors; the reports in docs/conformance/.  Only
the standard library is used, so that it runs before anything is installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from generators import codes_doc, codes_java, codes_py, contract_readme, draft_profile, scoreboard, spec_index
from generators.contract_files import Contract, load


def outputs(root: Path, contract: Contract) -> dict[Path, str]:
    """The text of every generated file, by path."""
    spec, readme = root / "contract/SPEC.md", root / "contract/README.md"
    return {
        root / "sdk/lastword/_codes.py": codes_py.render(contract),
        root / "docs/codes.md": codes_doc.render(contract),
        root / "contract/profiles/draft.json": draft_profile.render(contract, root / "contract/vectors"),
        spec: spec_index.render(spec.read_text(encoding="utf-8")),
        readme: contract_readme.render(readme.read_text(encoding="utf-8"), contract),
        **codes_java.render(root, contract),
        **scoreboard.render(root),
    }


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(__file__).resolve().parent.parent
    stale = 0
    for path, text in outputs(root, load(root / "contract")).items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        name = path.relative_to(root)
        if arguments:
            print(f"stale: {name} (run scripts/generate.py)", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
