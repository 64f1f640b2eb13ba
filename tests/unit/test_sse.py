"""The decoder: WHATWG's grammar, wherever the bytes are cut."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword._sse import MAX_EVENT_BYTES, ServerSentEvent, SSEDecoder

Events = list[ServerSentEvent]

FIELDS = [b"data: ", b"data:", b"data", b"event: ", b"event", b"id: 1", b"retry: 5", b": note", b" ", b"x"]
NEWLINES = [b"\n", b"\r", b"\r\n", b"\n\n"]
ODDITIES = [b"\xef\xbb\xbf", b"\xef", b"\xbb", b"\xff", "\u2028\u0085".encode(), b"\x0b", b"\x1c", b"\0"]
PIECES = st.sampled_from([*FIELDS, *NEWLINES, *ODDITIES])
BODIES = st.one_of(st.binary(max_size=80), st.lists(PIECES, max_size=30).map(b"".join))


def decode(*chunks: bytes, limit: int = MAX_EVENT_BYTES) -> tuple[Events, bool, bool]:
    """The events, whether one was too large, and whether half a one is left."""
    decoder = SSEDecoder(max_event_bytes=limit)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events, decoder.too_large, decoder.pending


def cut(body: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    return [body[start:end] for start, end in pairwise(edges)]


def reference(body: bytes) -> Events:
    """The grammar as the standard words it, over the whole text at once."""
    text = body.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    events, data, name = [], list[str](), ""
    for line in re.split("\r\n|\r|\n", text)[:-1]:
        if not line:
            if data:
                events.append(ServerSentEvent("\n".join(data), name))
            data, name = [], ""
            continue
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif field == "event":
            name = value.removeprefix(" ")
    return events


@given(BODIES, st.lists(st.integers(0, 10_000), max_size=12))
def test_any_chunking_gives_the_same_events(body: bytes, places: list[int]) -> None:
    """Events, and what is left over, do not depend on where the transport cut (SSE-1)."""
    assert decode(*cut(body, places)) == decode(body)


@given(BODIES)
def test_byte_by_byte_gives_the_same_events(body: bytes) -> None:
    """The finest chunking, which also cuts every CRLF, BOM and UTF-8 sequence."""
    assert decode(*(bytes([byte]) for byte in body)) == decode(body)


@given(BODIES)
def test_agrees_with_the_standard(body: bytes) -> None:
    """The events are those of a straightforward reading of the grammar."""
    assert decode(body)[0] == reference(body)


@given(st.lists(st.sampled_from(["data: a", "data:b", "data", "event: e", ": c", "id: 1", "", "", "x"]), max_size=20))
def test_any_newline_form_gives_the_same_events(lines: list[str]) -> None:
    """LF, CR and CRLF mean the same."""
    forms = [decode("".join(line + newline for line in lines).encode()) for newline in ("\n", "\r", "\r\n")]
    assert forms == [forms[0]] * 3


@given(BODIES, st.lists(st.integers(0, 10_000), max_size=12), st.integers(0, 40))
def test_the_size_limit_gives_the_same_verdict_for_any_chunking(body: bytes, places: list[int], limit: int) -> None:
    """Whether an event is too large, and which events came before it, depends on the bytes only."""
    events, too_large, _ = decode(body, limit=limit)
    assert decode(*cut(body, places), limit=limit)[:2] == (events, too_large)


@given(BODIES, BODIES)
def test_an_empty_chunk_changes_nothing(first: bytes, second: bytes) -> None:
    """A transport may deliver nothing at any time."""
    assert decode(b"", first, b"", b"", second, b"") == decode(first, second)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"data: a\n\n", [("a", "")]),
        (b"data:a\n\n", [("a", "")]),
        (b"data:  a \n\n", [(" a ", "")]),
        (b"data\n\n", [("", "")]),
        (b"data: a\ndata\ndata: b\n\n", [("a\n\nb", "")]),
        (b"event: error\ndata: a\n\ndata: b\n\n", [("a", "error"), ("b", "")]),
        (b"event: x\n\ndata: a\n\n", [("a", "")]),
        (b"event: x\nevent\ndata: a\n\n", [("a", "")]),
        (b": c\n\nid: 1\n\nretry: 2\n\n", []),
        (b"id: 1\n: c\ndata: a\n: c\n\n", [("a", "")]),
        (b"\n\n\ndata: a\n\n", [("a", "")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("a", "")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"\n\xef\xbb\xbfdata: a\n\n", []),
        (b"data: \xff\n\n", [("\ufffd", "")]),
        ("data: \u2028\u0085\x0b\x0c\x1c\n\n".encode(), [("\u2028\u0085\x0b\x0c\x1c", "")]),
        (b"Data: a\n\n", []),
        (b" data: a\n\n", []),
        (b"data: a\n", []),
    ],
)
def test_grammar(body: bytes, expected: list[tuple[str, str]]) -> None:
    """Fields, joins, names, comments, BOM and bad UTF-8 as WHATWG HTML §9.2.6 has them."""
    assert decode(body)[0] == [ServerSentEvent(*event) for event in expected]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", False),
        (b"data: a\n\n", False),
        (b"data: a\r\n\r", False),
        (b"data: a\r\n\r\n", False),
        (b"data: a\n", True),
        (b"data", True),
        (b"event: e\n", True),
        (b"\xef\xbb", True),
        (b": comment\n", False),
        (b"\xef\xbb\xbf", False),
    ],
)
def test_pending_tells_whether_the_end_cut_an_event(body: bytes, expected: bool) -> None:
    """An event that no blank line has ended is held; a finished comment is not part of one (SSE-7)."""
    assert decode(body)[2] == expected


@pytest.mark.parametrize(
    ("body", "limit", "events", "too_large"),
    [
        (b"data: 1234\n\n", 10, 1, False),
        (b"data: 12345\n\n", 10, 0, True),
        (b"data: 12345", 10, 0, True),
        (b"data: 1\ndata: 2\n\n", 14, 1, False),
        (b"data: 1\ndata: 2\n\n", 13, 0, True),
        (b"data: 1\n\ndata: 2\n\n", 7, 2, False),
        (b"data: 1\n\n: 1234567\n\ndata: 2\n\n", 7, 1, True),
        (b": 1\n: 2\n: 3\n: 4\n: 5\ndata: 1\n\n", 7, 1, False),
    ],
)
def test_size_limit(body: bytes, limit: int, events: int, too_large: bool) -> None:
    """The lines of one event together, or any one line, may have ``max_event_bytes`` bytes (SSE-9)."""
    found = decode(body, limit=limit)
    assert (len(found[0]), found[1]) == (events, too_large)


def test_nothing_follows_an_event_that_is_too_large() -> None:
    """The decoder stops for good: what comes after cannot be trusted to begin an event."""
    decoder = SSEDecoder(max_event_bytes=10)
    assert decoder.feed(b"data: a\n\ndata: far too long\n") == [ServerSentEvent("a")]
    assert decoder.feed(b"\n\ndata: b\n\n") == []
    assert decoder.too_large


def test_a_long_line_in_small_pieces_is_joined_once() -> None:
    """A megabyte in 64-byte pieces is one event (SSE-8); joining at each piece would take minutes."""
    text = b"x" * (1 << 20)
    body = b"data: " + text + b"\n\n"
    pieces = [body[start : start + 64] for start in range(0, len(body), 64)]
    assert decode(*pieces) == ([ServerSentEvent(text.decode())], False, False)
