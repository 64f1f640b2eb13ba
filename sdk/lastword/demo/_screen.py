"""A terminal as the demo writes to it: no wider than it is, in colour where there is any, each word at once."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import IO, Final

_WIDEST: Final = 100  # columns that prose may take
_NARROWEST: Final = 24  # below this lines are left to the terminal
_WIDTHS: Final = (39, 19, 29)  # of a table's columns; the first one gives way
_GAP: Final = "  "
_LEAST: Final = 16  # columns the first one keeps; below that a row becomes a list


class Screen:
    """Where the demo's progress goes; ``width`` is in columns, the terminal's (or COLUMNS, or 80) if it is not given."""

    def __init__(self, stream: IO[str], *, width: int | None = None) -> None:
        self._stream = stream
        self._colour = stream.isatty()
        room = shutil.get_terminal_size().columns if width is None else width
        self.width = max(_NARROWEST, room - 1)  # many terminals wrap a line that fills them
        self._column = 0
        self._blank = ""

    def say(self, text: str = "") -> None:
        """Print a line as it is."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def prose(self, text: str, *, indent: str = "") -> None:
        """Print a paragraph, wrapped."""
        width = min(self.width, _WIDEST)
        self.say(textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False))

    def flow(self, text: str, *, indent: str = "   ") -> None:
        """Print a piece of a text that comes in pieces, wrapped between its words; ``flowed`` ends it."""
        for part in re.findall(r"\n| +|[^\n ]+", text):
            if part.isspace() and part != "\n":
                self._blank = part
                continue
            if part == "\n" or self._column + len(self._blank + part) > self.width:
                self._stream.write("\n")
                self._column, self._blank = 0, ""
            if part != "\n":
                start = self._blank if self._column else indent
                self._stream.write(start + part)
                self._column += len(start + part)
                self._blank = ""
        self._stream.flush()

    def flowed(self) -> None:
        """End a text that came in pieces."""
        self._column, self._blank = 0, ""
        self.say()

    def paint(self, text: str, colour: str) -> str:
        """Give ``text`` in a colour (an SGR number) if this is a terminal."""
        return f"\033[{colour}m{text}\033[0m" if self._colour and colour and text.strip() else text


class Table:
    """A table of three columns, printed row by row; the header goes first. Too narrow for one: a list under each row."""

    def __init__(self, screen: Screen, header: Sequence[str]) -> None:
        self._screen, self._header = screen, header
        _, *others = _WIDTHS
        first = min(_WIDTHS[0], screen.width - sum(others) - len(_GAP) * len(others))
        self._widths = (first, *others) if first >= _LEAST else ()
        if self._widths:
            self.row(header)
            self.row(["-" * width for width in self._widths])

    def row(self, cells: Sequence[str], colours: Sequence[str] = ("", "", "")) -> None:
        """Print one row; each cell has its colour."""
        if not self._widths:
            self._screen.prose(cells[0])
            for name, cell, colour in zip(self._header[1:], cells[1:], colours[1:], strict=True):
                self._screen.say(f"  {name}: {self._screen.paint(cell, colour)}")
            return
        wrapped = [
            textwrap.wrap(cell, width, break_on_hyphens=False) for cell, width in zip(cells, self._widths, strict=True)
        ]
        for line in zip_longest(*wrapped, fillvalue=""):
            parts = zip(line, self._widths, colours, strict=True)
            self._screen.say(_GAP.join(self._screen.paint(f"{part:<{width}}", c) for part, width, c in parts).rstrip())
