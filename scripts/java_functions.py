"""The functions of a Java file and their lengths, found by its braces alone.

What is measured is every body that stands in a type's body and is no type itself: methods, constructors, initializers, and the
lambdas of fields.  A method of an anonymous or local class is one of its own, and does not count in the one that it stands in;
a lambda in a method does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

NO_CODE = re.compile(
    r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL,
)
PARENTHESES = re.compile(r"\([^()]*\)")  # the innermost; each becomes a #, which Java does not know
TYPE = re.compile(r"(?<![\w.])(?:class|interface|enum|record)\s+\w|\bnew\s+[\w.@\s]+(?:<.*>)?\s*#\s*$", re.DOTALL)
CONSTANT = r"[A-Z][A-Z0-9_]*\s*#?\s*"
CONSTANTS = re.compile(rf"[\s,]*{CONSTANT}(?:,\s*{CONSTANT})*")  # an enum's, of which the last has a body
NAME = re.compile(r"(\w+)\s*(?:#[^#]*|=[^=].*)?$", re.DOTALL)


class JavaFunction(NamedTuple):
    """One of them: the line on which its body opens, and how many lines the body has between its braces."""

    name: str
    line: int
    lines: int


@dataclass
class _Open:
    """A brace that is not closed yet."""

    line: int
    is_type: bool
    function: str | None
    within: int = 0  # lines of the functions inside


def java_functions(text: str) -> Iterator[JavaFunction]:
    """The functions of a Java file, each when its body has ended.

    Raises:
        ValueError: its braces do not match.
    """
    code = NO_CODE.sub(lambda found: " " + "\n" * found[0].count("\n"), text)
    opened: list[_Open] = []
    line, since = 1, 0
    for found in re.finditer(r"[{};\n]", code):
        mark = found[0]
        if mark == "\n":
            line += 1
            continue
        if mark == "{":
            opened.append(_opens(code[since : found.start()], line, opened))
        elif mark == "}":
            if not opened:
                raise ValueError(f"line {line} closes a brace that is not open")
            yield from _closes(opened, line)
        since = found.end()
    if opened:
        raise ValueError(f"the brace of line {opened[-1].line} is not closed")


def _opens(head: str, line: int, opened: list[_Open]) -> _Open:
    """What a brace opens, by what stands between it and the statement or brace before it."""
    flat, found = head, 1
    while found:
        flat, found = PARENTHESES.subn("#", flat)
    in_type = bool(opened) and opened[-1].is_type
    is_type = bool(TYPE.search(flat)) or (in_type and bool(CONSTANTS.fullmatch(flat)))
    an_array = flat.rstrip().endswith(("=", "]", "("))  # or the arguments of an annotation
    if is_type or an_array or not in_type:
        return _Open(line, is_type, None)
    name = NAME.search(flat.rstrip())
    return _Open(line, is_type=False, function=name[1] if name else "initializer")


def _closes(opened: list[_Open], line: int) -> Iterator[JavaFunction]:
    ended = opened.pop()
    inside = ended.within
    if ended.function is not None:
        yield JavaFunction(ended.function, ended.line, max(0, line - ended.line - 1 - inside))
        inside = line - ended.line + 1
    if opened:
        opened[-1].within += inside
