"""What the demo prints fits the terminal, whatever its width, and loses nothing."""

from __future__ import annotations

import io

import pytest

from lastword.demo._endings import LABELS
from lastword.demo._screen import Screen, Table

SAID = ("finish_reason, no [DONE], clean end (1)", 'complete: "Hello"', "incomplete: stream_incomplete")


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [40, 60, 70, 80, 92, 100, 200])
def test_a_table_fits_and_keeps_its_words(width: int) -> None:
    out = io.StringIO()
    table = Table(Screen(out, width=width), ["ending", "openai 3.57.0", "lastword"])
    for label in LABELS.values():
        table.row([label, *SAID[1:]])
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) < max(width, 44)
    words = out.getvalue().split()
    assert all(word in words for label in LABELS.values() for word in label.split())
    assert words.count("incomplete:") == len(LABELS)


def test_a_wide_table_has_one_line_a_row() -> None:
    out = io.StringIO()
    table = Table(Screen(out, width=92), ["ending", "stock", "lastword"])
    for label in LABELS.values():
        table.row([label, *SAID[1:]])
    assert len(out.getvalue().splitlines()) == 2 + len(LABELS)


def test_colours_take_no_room() -> None:
    plain, coloured = io.StringIO(), Terminal()
    for stream in (plain, coloured):
        Table(Screen(stream, width=80), ["a", "b", "c"]).row(SAID, ("", "31", "32"))
    assert "\033[31m" in coloured.getvalue()
    bare = coloured.getvalue().replace("\033[31m", "").replace("\033[32m", "").replace("\033[0m", "")
    assert [line.rstrip() for line in bare.splitlines()] == plain.getvalue().splitlines()


@pytest.mark.parametrize(
    ("pieces", "printed"),
    [
        (["Some", " words", " of", " an", " answer", " that", " is", " long"], "   Some words of an answer\n   that is long\n"),
        (["one\n\ntwo"], "   one\n\n   two\n"),
        (["half", "way"], "   halfway\n"),
        (["", " ", "led"], "   led\n"),
    ],
)  # fmt: skip
def test_a_text_that_comes_in_pieces_breaks_between_its_words(pieces: list[str], printed: str) -> None:
    out = io.StringIO()
    screen = Screen(out, width=28)
    for piece in pieces:
        screen.flow(piece)
    screen.flowed()
    assert out.getvalue() == printed


def test_without_a_width_it_takes_the_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert Screen(io.StringIO()).width == 49
