"""Where an answer's body ends: however its bytes are cut, and never beyond its end."""

from __future__ import annotations

from collections.abc import Iterable

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword_shim.sidecar.failures import Broken, Unreadable
from lastword_shim.sidecar.framing import MAX_LINE, MAX_TRAILERS, Chunked, Framing, Sized, UntilClose
from lastword_shim.sidecar.http1 import MAX_HEAD, Http1

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def fed(framing: Framing, data: bytes) -> bytes:
    parts: list[bytes] = []
    framing.feed(data, parts)
    assert b"" not in parts
    return b"".join(parts)


def feed(framing: Framing, data: bytes, cuts: Iterable[int]) -> bytes:
    came, at = b"", 0
    for cut in [*sorted(cuts), len(data)]:
        came += fed(framing, data[at:cut])
        at = max(at, cut)
    return came


def as_h11_reads(data: bytes) -> tuple[bytes, bool] | None:
    """The body and whether it is whole; None where h11 refuses it."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(HEAD + data)
    body = b""
    try:
        while isinstance(event := connection.next_event(), h11.Response | h11.Data):
            body += bytes(event.data) if isinstance(event, h11.Data) else b""
    except h11.RemoteProtocolError:
        return None
    return body, isinstance(event, h11.EndOfMessage)


PARTS = st.lists(st.binary(min_size=1, max_size=20), max_size=5)
EXTENSIONS = st.sampled_from([b"", b";a", b";a=b", b' ;a="b"', b"  "])


@given(PARTS, EXTENSIONS, st.sampled_from([b"", b"x-a: b\r\n"]), st.sets(st.integers(0, 200)))
def test_chunks_are_read_however_they_are_cut(parts: list[bytes], ext: bytes, trailer: bytes, cuts: set[int]) -> None:
    data = b"".join(b"%x%b\r\n%b\r\n" % (len(part), ext, part) for part in parts) + b"0\r\n" + trailer + b"\r\n"
    framing = Chunked()
    assert feed(framing, data, (cut for cut in cuts if cut < len(data))) == b"".join(parts)
    assert (framing.done, framing.left_over) == (True, False)
    framing.eof()


@given(st.lists(st.sampled_from([b"3", b"0", b"\r\n", b"abc", b"\r", b";x", b"A", b" ", b"-", b"x: y"]), max_size=9))
def test_h11_would_read_the_same(parts: list[bytes]) -> None:
    """What h11 takes for a whole body is the same one here, and nothing else is whole."""
    data = b"".join(parts)
    theirs = as_h11_reads(data)
    framing = Chunked()
    try:
        ours: tuple[bytes, bool] | None = (fed(framing, data), framing.done)
    except Unreadable:
        ours = None
    if theirs is not None and theirs[1]:
        assert ours == theirs or b"\r\n " in data  # a folded line, which is obsolete
    else:
        assert ours is None or not ours[1]


@given(st.binary(max_size=30), st.integers(0, 30), st.sets(st.integers(0, 30)))
def test_a_length_is_never_exceeded(data: bytes, length: int, cuts: set[int]) -> None:
    framing, came = Sized(length), b""
    cuts = {cut for cut in cuts if cut < len(data)}
    at = 0
    for cut in [*sorted(cuts), len(data)]:
        if not framing.done:
            came += fed(framing, data[at:cut])
            at = cut
    assert came == data[:length]
    assert framing.done == (len(came) == length)
    if not framing.done:
        with pytest.raises(Broken, match=f"after {len(came)} of {length} bytes"):
            framing.eof()


def test_without_a_length_the_end_is_the_end() -> None:
    framing = UntilClose()
    assert fed(framing, b"a") + fed(framing, b"") + fed(framing, b"b") == b"ab"
    done = framing.done
    framing.eof()
    assert (done, framing.done, framing.reusable) == (False, True, False)


@pytest.mark.parametrize(
    "data",
    [
        b"zz\r\n", b"-1\r\n", b"+3\r\n", b"0x3\r\n", b"3 3\r\n", b"\r\n", b"3\n", b"1" * 16 + b"\r\n", b"3;\x00\r\n",
        b"3\r\nabcd\r\n", b"3\r\nabc\n", b"1" * MAX_LINE, b"0\r\nx: y\n",
        b"0\r\n" + b"x-a: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n" * (MAX_TRAILERS // 30),
    ],
)  # fmt: skip
def test_what_is_no_chunk_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        Chunked().feed(data, [])


def test_what_came_before_the_fault_counts() -> None:
    """Even where it came in one read."""
    parts: list[bytes] = []
    with pytest.raises(Unreadable):
        Chunked().feed(b"3\r\nabc\r\nzz\r\n", parts)
    assert parts == [b"abc"]


@pytest.mark.parametrize("data", [b"", b"3", b"3\r\n", b"3\r\nab", b"3\r\nabc", b"3\r\nabc\r\n", b"3\r\nabc\r\n0\r\n"])
def test_a_chunked_body_that_is_cut_is_broken(data: bytes) -> None:
    framing = Chunked()
    framing.feed(data, [])
    with pytest.raises(Broken):
        framing.eof()


def http1(method: bytes = b"GET") -> Http1:
    http = Http1()
    http.request(method, b"/", [(b"host", b"a")])
    http.end()
    return http


@pytest.mark.parametrize(
    ("head", "method", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"GET", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", b"HEAD", True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"HEAD", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"GET", True),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", b"GET", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", b"GET", False),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: x, Close\r\n\r\n", b"GET", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", b"GET", False),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\n", b"GET", False),
        (b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"GET", True),
    ],
)
def test_an_answer_without_a_body_is_done_with_its_head(head: bytes, method: bytes, reusable: bool) -> None:
    http = http1(method)
    http.feed(head)
    assert http.head is not None
    assert (http.done, http.reusable, http.parts) == (True, reusable, [])


def test_a_connection_is_not_reused_while_the_request_is_not_all_sent() -> None:
    http = Http1()
    http.request(b"POST", b"/", [(b"host", b"a"), (b"content-length", b"3")])
    http.body(b"ab")
    http.feed(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
    assert (http.done, http.reusable) == (True, False)


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x-a: " + b"b" * MAX_HEAD,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\n" * 20,
        b"\x16\x03\x01\x02\x00",
        b"HTTP/2 200 OK\r\n\r\n",
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        http1().feed(data)


@given(st.sets(st.integers(1, 120)))
def test_an_answer_is_the_same_however_it_is_cut(cuts: set[int]) -> None:
    data = (
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nset-cookie: b\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    )
    http, at = http1(), 0
    for cut in [*sorted(cut for cut in cuts if cut < len(data)), len(data)]:
        http.feed(data[at:cut])
        at = cut
    assert http.head is not None
    assert [value for name, value in http.head.fields if name == b"set-cookie"] == [b"a", b"b"]
    assert (b"".join(http.parts), http.done, http.reusable) == (b"abc", True, True)
