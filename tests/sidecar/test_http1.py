"""One answer read: however its bytes are cut, and never beyond its end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword_shim.sidecar.failures import Broken, Unreadable
from lastword_shim.sidecar.http1 import MAX_HEAD, Http1

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n"


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
        CHUNKED + b"zz\r\n",
        CHUNKED + b"3\r\nabcd\r\n",
        CHUNKED + b"1" * (MAX_HEAD + 1),
        CHUNKED + b"0\r\n" + b"x-a: b\r\n" * MAX_HEAD,
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


def test_what_came_before_the_fault_counts() -> None:
    """Even where it came in one read."""
    http = http1()
    with pytest.raises(Unreadable):
        http.feed(CHUNKED + b"3\r\nabc\r\nzz\r\n")
    assert http.parts == [b"abc"]


@pytest.mark.parametrize("rest", [b"", b"3", b"3\r\nab", b"3\r\nabc\r\n", b"3\r\nabc\r\n0\r\n"])
def test_a_body_that_is_cut_is_broken(rest: bytes) -> None:
    for head in (b"", b"HTTP/1.1 200", SIZED, CHUNKED):
        http = http1()
        if head:
            http.feed(head + rest if head in {SIZED, CHUNKED} else head)
        whole = "its answer was whole" if head in {SIZED, CHUNKED} else "it answered"
        with pytest.raises(Broken, match=f"^it closed before {whole}$"):
            http.eof()
        assert not http.reusable


def test_without_a_length_the_end_is_the_end() -> None:
    """And nothing tells a whole body from half of one."""
    http = http1()
    http.feed(b"HTTP/1.1 200 OK\r\n\r\nabc")
    assert (http.parts, http.done) == ([b"abc"], False)
    http.eof()
    assert http.done is not http.reusable


def test_an_end_after_the_end_breaks_nothing() -> None:
    http = http1()
    http.feed(SIZED + b"123456789012")
    http.eof()
    assert (http.parts, http.done) == ([b"123456789012"], True)
