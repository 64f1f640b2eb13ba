"""Which header fields pass, and what the sidecar adds (RFC 9110 §7.6); where an upstream may be."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lastword_shim.sidecar.address import Address, AddressError
from lastword_shim.sidecar.fields import inward, outward

PLAIN = Address("http", "127.0.0.1", 8000)
SECURE = Address("https", "engine.example", 443, "/team")


def scope(*fields: tuple[str, str], **more: Any) -> dict[str, Any]:
    headers = [(name.encode(), value.encode()) for name, value in fields]
    return {"headers": headers, "scheme": "http", "client": ("10.1.2.3", 5), "http_version": "1.1", **more}


def inwards(*fields: tuple[str, str], address: Address = PLAIN, **more: Any) -> dict[str, str]:
    given = inward(scope(*fields, **more), address, [])
    assert len({name for name, _ in given}) == len(given)
    return {name.decode(): value.decode() for name, value in given}


def test_what_is_about_one_connection_stays_there() -> None:
    """Fields of RFC 9110 §7.6.1, and those that Connection names, in any case and over several lines."""
    given = inwards(
        ("host", "a"), ("connection", "close, X-Mine"), ("connection", "x-other"), ("x-mine", "1"), ("x-other", "2"),
        ("keep-alive", "timeout=5"), ("te", "trailers"), ("transfer-encoding", "chunked"), ("upgrade", "h2c"),
        ("trailer", "x"), ("proxy-connection", "close"), ("expect", "100-continue"), ("http2-settings", "x"),
        ("authorization", "Bearer k"), ("x-request-id", "r"),
    )  # fmt: skip
    own = {"x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "via"}
    assert set(given) - own == {"host", "authorization", "x-request-id"}


def test_what_the_middleware_adds_cannot_be_taken_out() -> None:
    given = inwards(("connection", "x-request-id, x-own"), ("x-request-id", "ours"), ("x-own", "1"))
    assert (given.get("x-request-id"), given.get("x-own")) == ("ours", None)


def test_who_asked_is_told_and_appended() -> None:
    """As the next of a list; what a proxy in front has said of scheme and host stands."""
    given = inwards(
        ("host", "me"), ("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "2.2.2.2"), ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "public"), ("via", "1.1 front"),
    )  # fmt: skip
    assert given["x-forwarded-for"] == "1.1.1.1, 2.2.2.2, 10.1.2.3"
    assert (given["x-forwarded-proto"], given["x-forwarded-host"]) == ("https", "public")
    assert re.fullmatch(r"1\.1 front, 1\.1 lastword-[0-9a-f]{8}", given["via"])


def test_without_a_proxy_in_front_they_are_made() -> None:
    given = inwards(("host", "me:8080"), scheme="wss")
    assert given["x-forwarded-for"] == "10.1.2.3"
    assert (given["x-forwarded-proto"], given["x-forwarded-host"]) == ("https", "me:8080")
    assert given["via"].startswith("1.1 lastword-")
    assert "x-forwarded-for" not in inwards(("host", "me"), client=None)


@pytest.mark.parametrize(
    ("address", "fields", "host"),
    [
        (PLAIN, [("host", "me:8080")], "me:8080"),
        (PLAIN, [], "127.0.0.1:8000"),
        (SECURE, [("host", "me:8080")], "engine.example"),
    ],
)
def test_host_is_the_callers_except_under_tls(address: Address, fields: list[tuple[str, str]], host: str) -> None:
    assert inwards(*fields, address=address)["host"] == host


def test_an_answers_fields_keep_their_order_and_number() -> None:
    fields = [(b"set-cookie", b"a"), (b"server", b"x"), (b"set-cookie", b"b"), (b"location", b"/v"), (b"date", b"d")]
    assert outward(200, [(b"connection", b"keep-alive"), *fields, (b"keep-alive", b"timeout=5")]) == fields


@pytest.mark.parametrize(
    ("status", "extra", "kept"),
    [(200, [], True), (200, [(b"transfer-encoding", b"chunked")], False), (304, [], False), (204, [], False)],
)
def test_a_length_passes_where_it_is_the_bodys(status: int, extra: list[tuple[bytes, bytes]], kept: bool) -> None:
    assert (outward(status, [(b"content-length", b"5"), *extra]) != []) is kept


@pytest.mark.parametrize(
    ("address", "path", "query", "target"),
    [
        (PLAIN, b"/v1/a%2Fb%20c", b"x=%2F&y=+", b"/v1/a%2Fb%20c?x=%2F&y=+"),
        (PLAIN, b"//v1/../x", b"", b"//v1/../x"),
        (SECURE, b"/v1/models", b"", b"/team/v1/models"),
    ],
)
def test_a_path_passes_as_it_was_sent(address: Address, path: bytes, query: bytes, target: bytes) -> None:
    given = {"path": "decoded", "raw_path": path, "query_string": query}
    assert address.target(given) == target


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://localhost:80/v1/", "http://localhost"),
        ("https://engine.example/team/v1", "https://engine.example/team"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("HTTP://Engine.Example:8000", "http://engine.example:8000"),
    ],
)
def test_an_address_is_read(url: str, text: str) -> None:
    """A path's last /v1 is the callers' own."""
    assert str(Address.parse(url)) == text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "is no http:// or https:// URL: give a URL such as"),
        ("127.0.0.1:8000", "is no http:// or https:// URL"),
        ("ftp://a", "is no http:// or https:// URL"),
        ("http://", "is no http:// or https:// URL"),
        ("http://a:70000", "is no URL"),
        ("http://[::1", "is no URL"),
        ("http://user:secret@a", "holds a name or a password"),
        ("http://a/?x=1", "more than a host, a port and a path"),
        ("http://a/b c", "more than a host, a port and a path"),
        (f"http://{'a' * 70}.example", "no host name that can be looked up"),
    ],
)
def test_an_address_that_is_none_is_named(url: str, words: str) -> None:
    with pytest.raises(AddressError, match="secret") if "secret" in words else pytest.raises(AddressError) as caught:
        Address.parse(url)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("deadline", "spent", "told"),
    [
        ("5000", 0.0, "5000"),
        ("5000", 1.25, "3750"),
        ("5000", 4.9999, "1"),
        ("5000", 60.0, "1"),
        ("soon", 1.0, "soon"),
        ("0", 1.0, "0"),
    ],
)
def test_the_upstream_is_told_what_is_left_of_the_deadline(deadline: str, spent: float, told: str) -> None:
    """A positive number (HDR-3); what is none passes as it is."""
    given = dict(inward(scope(("host", "a"), ("Request-Timeout-MS", deadline)), PLAIN, [], spent=spent))
    assert given[b"request-timeout-ms"] == told.encode()
