"""The scripted server itself: what goes on the wire."""

from __future__ import annotations

import json
import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Literal, cast

import httpx
import pytest
import trustme

from lastword._scripted._script import parse_exchange
from lastword.testing import ScriptedServer, answer, stream

SEGMENTATIONS = ["event", "whole", "1", "7"]


def get(server: ScriptedServer, path: str = "/v1/x", **options: float) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=options.get("timeout", 5.0)) as client:
        return client.get(server.origin + path)


def raw_get(server: ScriptedServer) -> bytes:
    """Give every byte the server sends in answer to one request, up to its FIN."""
    with socket.create_connection((server.host, server.port), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("segmentation", SEGMENTATIONS)
@pytest.mark.parametrize("framing", ["chunked", "content-length", "close"])
def test_the_same_body_arrives_whatever_the_framing_and_the_cuts(framing: str, segmentation: str) -> None:
    with ScriptedServer([{**stream("Hel", "lo"), "framing": framing}], segmentation=segmentation) as server:
        response = get(server)
    events = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert [json.loads(event)["choices"][0]["delta"].get("content") for event in events[:-1]] == ["", "Hel", "lo", None]
    assert events[-1] == "[DONE]"
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"


@pytest.mark.parametrize(
    ("segmentation", "sizes"), [("event", [6, 6]), ("7", [6, 6]), ("4", [4, 2, 4, 2]), ("1", [1] * 12)]
)
def test_a_segment_is_one_http_chunk(segmentation: str, sizes: list[int]) -> None:
    exchange = {"status": 200, "steps": [{"text": "abcdef"}, {"text": "ghijkl"}, {"end": "truncate"}]}
    with ScriptedServer([exchange], segmentation=segmentation) as server:
        body = raw_get(server).partition(b"\r\n\r\n")[2]
    lines = body.split(b"\r\n")
    assert [int(line, 16) for line in lines[:-1:2]] == sizes
    assert b"".join(lines[1::2]) == b"abcdefghijkl"


@pytest.mark.parametrize("segmentation", SEGMENTATIONS)
def test_a_step_without_bytes_does_not_end_the_body(segmentation: str) -> None:
    exchange = {"status": 200, "steps": [{"text": ""}, {"text": "abc"}, {"text": ""}]}
    with (
        ScriptedServer([exchange, exchange], segmentation=segmentation) as server,
        httpx.Client(trust_env=False) as client,
    ):
        assert [client.get(server.base_url).text for _ in range(2)] == ["abc", "abc"]
    assert server.connections == 1


def test_whole_sends_head_and_body_in_one_write() -> None:
    exchange = {"status": 200, "framing": "close", "steps": [{"text": "abc"}, {"text": "def"}]}
    with (
        ScriptedServer([exchange], segmentation="whole") as server,
        socket.create_connection((server.host, server.port)) as raw,
    ):
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert raw.recv(65536).endswith(b"\r\n\r\nabcdef")


def test_bytes_that_are_no_text_and_repeats_are_sent_as_they_are() -> None:
    steps = [
        {"base64": "77u//w=="},
        {"repeat": {"text": "ab", "times": 3}},
        {"data": "two\nlines", "event": "x"},
        {"json": {"a": 1}},
    ]
    with ScriptedServer([{"status": 200, "steps": steps}]) as server:
        assert get(server).content == b'\xef\xbb\xbf\xffabababevent: x\ndata: two\ndata: lines\n\n{"a": 1}'


@pytest.mark.parametrize(
    ("framing", "end", "error"),
    [
        ("chunked", "truncate", httpx.RemoteProtocolError),
        ("content-length", "truncate", httpx.RemoteProtocolError),
        ("chunked", "reset", httpx.ReadError),
        ("close", "reset", httpx.ReadError),
        ("chunked", "stall", httpx.ReadTimeout),
    ],
)
def test_broken_endings_break_the_body(framing: str, end: Literal["truncate"], error: type[Exception]) -> None:
    with ScriptedServer([{**stream("Hello", end=end), "framing": framing}]) as server, pytest.raises(error):
        get(server, timeout=0.3)


def test_truncation_of_a_body_without_framing_cannot_be_seen() -> None:
    with ScriptedServer([{**stream("Hello", end="truncate"), "framing": "close"}]) as server:
        assert "Hello" in get(server).text


def test_reset_arrives_after_every_byte_that_was_sent_before_it() -> None:
    exchange = {"status": 200, "framing": "close", "steps": [{"text": "x" * 100_000}, {"end": "reset"}]}
    with ScriptedServer([exchange]) as server, socket.create_connection((server.host, server.port), timeout=5) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        received: list[bytes] = []
        with pytest.raises(ConnectionResetError):
            received.extend(iter(lambda: raw.recv(65536), b""))
    assert b"".join(received).count(b"x") == 100_000


def test_without_a_status_the_steps_are_all_that_is_sent() -> None:
    with ScriptedServer([{"steps": [{"text": "SSH-2.0-nope\r\n"}]}, {"steps": [{"end": "reset"}]}]) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            get(server)
        with pytest.raises(httpx.ReadError):
            get(server)


def test_silence_before_the_head_lasts_as_long_as_the_script_says() -> None:
    with ScriptedServer([{**answer("late"), "before": [{"delay_ms": 200}]}]) as server:
        started = time.monotonic()
        assert get(server).status_code == 200
        assert time.monotonic() - started >= 0.2


def test_headers_are_dated_repeated_and_left_out() -> None:
    headers = {"retry-after": {"http_date_in_s": 90}, "x-a": ["1", "2"], "content-type": None}
    with ScriptedServer([{**answer("x"), "headers": headers}]) as server:
        response = get(server)
    ahead = parsedate_to_datetime(response.headers["retry-after"]) - datetime.now(UTC)
    assert timedelta(seconds=85) < ahead <= timedelta(seconds=90)
    assert response.headers.get_list("x-a") == ["1", "2"]
    assert "content-type" not in response.headers


def test_a_connection_can_be_closed_without_a_word_about_it() -> None:
    with ScriptedServer([{**answer("a"), "then": "close"}]) as server:
        assert b"connection" not in raw_get(server)


@pytest.mark.parametrize("end", ["complete", "truncate", "reset"])
def test_it_speaks_tls(end: Literal["complete", "truncate", "reset"]) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with (
        ScriptedServer([stream("Hello", end=end)], tls=context) as server,
        httpx.Client(verify=trusting, trust_env=False) as client,
    ):
        if end == "complete":
            assert "Hello" in client.get(server.base_url).text
        else:  # Python's ssl reads a reset as a bare end of file
            with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
                client.get(server.base_url)


def test_a_tls_handshake_can_hang() -> None:
    with ScriptedServer(accepting="silent") as server, pytest.raises(httpx.ConnectTimeout):
        httpx.get(f"https://127.0.0.1:{server.port}", timeout=0.3, trust_env=False)


def test_a_silent_server_lets_a_plain_client_wait_for_headers() -> None:
    with ScriptedServer(accepting="silent") as server, pytest.raises(httpx.ReadTimeout):
        get(server, timeout=0.3)


def test_connecting_can_hang() -> None:
    with ScriptedServer(accepting="no") as server, pytest.raises(httpx.ConnectTimeout):
        get(server, timeout=0.3)


@pytest.mark.parametrize(
    ("exchange", "message"),
    [
        ({"status": 200, "stepz": []}, "unknown fields"),
        ({"status": "200"}, "status '200' is not a number"),
        ({"status": 200, "framing": "smoke"}, "framing 'smoke'"),
        ({"status": 200, "steps": {"data": 1}}, "a list is needed"),
        ({"status": 200, "steps": ["x"]}, "an object is needed"),
        ({"status": 200, "steps": [{"dat": 1}]}, "cannot be played"),
        ({"status": 200, "steps": [{"end": "well"}]}, "'well' is not one of complete, truncate, reset, stall"),
        ({"status": 200, "steps": [{"await": "disconnect", "within_ms": "soon"}]}, "within_ms"),
        ({"status": 200, "steps": [{"end": "reset"}, {"data": 1}]}, "steps follow an end"),
        ({"status": 200, "before": [{"data": 1}]}, "before the response head"),
    ],
)
def test_a_script_that_cannot_be_played_is_refused_with_the_reason(exchange: dict[str, object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        parse_exchange(exchange)


def test_an_ending_that_does_not_exist_is_refused_where_it_is_written() -> None:
    with pytest.raises(ValueError, match="'truncated' is not one of complete, truncate, reset, stall"):
        stream("a", end=cast("Literal['truncate']", "truncated"))
