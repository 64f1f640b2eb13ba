#!/usr/bin/env python3
"""The rules of CONTRIBUTING.md that no linter knows: sizes, names, and who may import what.

Prints one line for each breach (`path:line: what`) and exits 1 if there is any. Files whose first line says that they are
generated are exempt from the size rules, which are the only ones for Java.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from java_functions import java_functions

ROOT = Path(__file__).resolve().parent.parent
CODE = ("sdk", "server_shim", "tests", "scripts")
JAVA = "java-compat"
MODULE_LINES = 300
FUNCTION_LINES = 40
FORBIDDEN_NAMES = ("util", "utils", "helper", "helpers", "manager", "common", "misc")
PURE_CORE = (
    *("_codes", "_sse", "_envelopes", "_classify", "_tool_calls", "_completeness", "_extras", "_url"),
    *("_outcome", "_errors", "_deadline", "_retry"),
)
CORE_MODULES = frozenset(f"lastword.{name}" for name in PURE_CORE)
HTTP_LIBRARIES = ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "requests", "aiohttp", "urllib3")
ENGINE_FOLDER = "server_shim/lastword_shim/engine/vllm/"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def breaches(path: Path) -> Iterator[str]:
    """The breaches of one Python or Java file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".java":
        yield from sizes(path, text, java_functions(text))
        return
    tree = ast.parse(text, str(path))
    if set(path.stem.lower().split("_")) & set(FORBIDDEN_NAMES):
        yield f"{path}:1: a module is named for what it does, not {path.stem!r}"
    functions = (node for node in ast.walk(tree) if isinstance(node, Function))
    yield from sizes(path, text, ((node.name, node.lineno, function_lines(node)) for node in functions))
    for line, module in imports(tree):
        if why := forbidden_import(path.as_posix(), module):
            yield f"{path}:{line}: imports {module}: {why}"


def sizes(path: Path, text: str, functions: Iterable[tuple[str, int, int]]) -> Iterator[str]:
    """What is too long in a file that is not generated; of each function: name, line, and how many it has."""
    lines = text.splitlines()
    if lines and "generated" in lines[0].lower():
        return
    if len(lines) > MODULE_LINES:
        yield f"{path}:1: {len(lines)} lines, more than {MODULE_LINES}"
    for name, line, length in functions:
        if length > FUNCTION_LINES:
            yield f"{path}:{line}: {name} has {length} lines, more than {FUNCTION_LINES}"


def function_lines(node: Function) -> int:
    """Lines of the body, less the docstring and the functions inside (they are counted by themselves)."""
    body = node.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        body = body[1:]
    nested = [inner for inner in ast.walk(node) if isinstance(inner, Function) and inner is not node]
    if not body:
        return 0
    lines = (body[-1].end_lineno or body[-1].lineno) - body[0].lineno + 1
    return lines - sum((inner.end_lineno or inner.lineno) - inner.lineno + 1 for inner in nested)


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every absolute import, also inside functions: (line, dotted name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module


def forbidden_import(path: str, module: str) -> str | None:
    """Why this file may not import that module, or None."""
    top = module.partition(".")[0]
    if top == "vllm" and not path.startswith(ENGINE_FOLDER) and path.startswith(("sdk/", "server_shim/")):
        return f"only {ENGINE_FOLDER} may"
    if path.startswith("sdk/") and top == "lastword_shim":
        return "the shim imports the SDK and never the other way round"
    in_core = path in {f"sdk/lastword/{name}.py" for name in PURE_CORE}
    if in_core and top in HTTP_LIBRARIES:
        return "the core has no I/O"
    if top == "lastword" and (in_core or path.startswith("server_shim/")) and module not in CORE_MODULES:
        return "the core and the shim know nothing of the SDK but the core"
    return None


def main() -> int:
    """Exit status: 0 clean, 1 breaches."""
    files = [path for folder in CODE for path in sorted((ROOT / folder).rglob("*.py"))]
    files += sorted((ROOT / JAVA).rglob("src/**/*.java"))
    found = [line for path in files for line in breaches(path.relative_to(ROOT))]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
