"""The report for a terminal or a pipe: tables in columns, a line each in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from lastword.conformance.show._printable import printable, shortened
from lastword.report._reading import Reading
from lastword.report._tables import Row, Table

_MOST_NAME = 60


def show(console: Console, tables: Iterable[Table], about: Sequence[str]) -> None:
    """Print the tables; ``about`` are lines on what was read, printed first."""
    for line in about:
        console.print(Text(printable(line)), soft_wrap=True)
    for table in tables:
        console.print()
        if console.is_terminal:
            _grid(console, table)
        else:
            _plain(console, table)


def _grid(console: Console, table: Table) -> None:
    console.print(Text(table.title, style="bold"))
    console.print(Text(table.note, style="dim"))
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim", show_header=any(table.head))
    for index, name in enumerate(table.head):
        justify = "left" if index < table.words else "right"
        grid.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]  # a Literal
    for row in table.rows:
        grid.add_row(*_cells(row), style="bold" if row.grave else None)
    console.print(grid)


def _plain(console: Console, table: Table) -> None:
    """Aligned, but never folded: a row is a line, for grep."""
    lines = [table.head, *(tuple(cell.plain for cell in _cells(row)) for row in table.rows)]
    wide = [max(cell_len(line[index]) for line in lines) for index in range(len(table.head))]
    console.print(Text(f"{table.title}: {table.note}"), soft_wrap=True)
    for line in lines if any(table.head) else lines[1:]:
        parts = [
            cell + " " * (width - cell_len(cell)) if index < table.words else " " * (width - cell_len(cell)) + cell
            for index, (cell, width) in enumerate(zip(line, wide, strict=True))
        ]
        console.print(Text("  ".join(parts).rstrip()), soft_wrap=True)


def _cells(row: Row) -> Iterator[Text]:
    for index, cell in enumerate(row.cells):
        indent = "  " * row.level if not index else ""
        yield Text(indent + shortened(printable(cell), _MOST_NAME))


def remarks(reading: Reading) -> Iterator[str]:
    """What was not read, or not counted, for standard error."""
    yield from (f"not read: {each}" for each in reading.unreadable)
    if reading.repeated:
        records = "1 record was" if reading.repeated == 1 else f"{reading.repeated:,} records were"
        yield f"{records} there already and not counted again"
    if reading.broken:
        lines = "1 line is no record" if reading.broken == 1 else f"{reading.broken:,} lines are no records"
        yield f"{lines} and not counted:"
        yield from (f"  {each}" for each in reading.named)
        if reading.broken > len(reading.named):
            yield f"  … and {reading.broken - len(reading.named):,} more"
