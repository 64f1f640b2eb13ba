"""The scripted server itself: what goes on the wire, what it notices, what it leaves behind."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx
import pytest
import trustme

from lastword.conformance._script import parse_exchange
from lastword.testing import ScriptedServer, answer, chunk, failure, stream

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


def test_a_connection_serves_one_request_after_the_other() -> None:
    exchanges = [stream("a"), answer("b"), failure(503, "queue_overloaded")]
    with ScriptedServer(exchanges) as server, httpx.Client(trust_env=False) as client:
        statuses = [client.get(server.base_url).status_code for _ in exchanges]
        assert server.open_connections == 1
    assert statuses == [200, 200, 503]
    assert server.connections == 1
    assert [request.connection for request in server.requests] == [1, 1, 1]


def test_a_closed_connection_is_replaced_by_a_new_one() -> None:
    exchanges = [{**answer("a"), "headers": {"connection": "close"}}, answer("b")]
    with ScriptedServer(exchanges) as server, httpx.Client(trust_env=False) as client:
        for _ in exchanges:
            client.get(server.base_url)
    assert [request.connection for request in server.requests] == [1, 2]


def test_the_log_holds_what_was_asked() -> None:
    with ScriptedServer([answer("x"), answer("y")]) as server, httpx.Client(trust_env=False) as client:
        client.post(server.base_url + "/chat?a=1", json={"model": "m"}, headers={"x-request-attempt": "2"})
        client.post(server.base_url, content=iter([b"ab", b"c"]))
    first, second = server.requests
    assert (first.method, first.path, first.json(), first.attempt) == ("POST", "/v1/chat?a=1", {"model": "m"}, 2)
    assert first.headers["content-type"] == "application/json"
    assert (second.body, second.attempt) == (b"abc", None)
    assert first.at < second.at


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


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ({"method": "POST", "path": "/v1/x", "headers": {"x-n": "5", "x-none": None}, "body": {"a": 1}}, None),
        ({"headers": {"x-n": {"minimum": 5, "maximum": 5, "pattern": "^[0-9]$", "same_as_first": True}}}, None),
        ({"method": "PUT"}, "its method is 'POST', not 'PUT'"),
        ({"path": "/v2"}, "its path is '/v1/x', not '/v2'"),
        ({"headers": {"x-n": "6"}}, "its header x-n is '5', not '6'"),
        ({"headers": {"X-N": None}}, "and should be absent"),
        ({"headers": {"x-n": {"minimum": 6}}}, "not at least 6"),
        ({"headers": {"x-n": {"maximum": 4}}}, "not at most 4"),
        ({"headers": {"x-none": {"maximum": 4}}}, "not at most 4"),
        ({"headers": {"x-n": {"pattern": "^[a-z]$"}}}, "which does not match"),
        ({"headers": {"x-none": {"same_as_first": True}}}, "not the first request's None"),
        ({"body": {"a": 2}}, "its body has a 1, not 2"),
        ({"body": {"b": None}}, "its body has b None, not None"),
    ],
)
def test_a_request_is_held_against_what_the_script_expects(expected: dict[str, object], problem: str | None) -> None:
    with ScriptedServer([{**answer("x"), "request": expected}], strict=False) as server:
        httpx.post(server.base_url + "/x", json={"a": 1}, headers={"x-n": "5"}, trust_env=False)
    assert len(server.problems) == (0 if problem is None else 1)
    assert (problem or "") in "".join(server.problems)


def test_the_clients_fin_is_seen_and_timed() -> None:
    script = stream("Hel", end="stall", then=[{"await": "disconnect", "within_ms": 2000}])
    with ScriptedServer([script]) as server, httpx.Client(trust_env=False) as client:
        with client.stream("GET", server.base_url) as response:
            # Everything is read: a close with unread bytes makes the kernel send an RST.
            assert any("Hel" in text for text in response.iter_text())
            left = time.monotonic()
        seen = server.wait_disconnected()
    assert seen is not None
    assert abs(seen - left) < 1
    assert server.requests[0].disconnected_by == "fin"


def test_the_clients_reset_is_told_from_a_fin() -> None:
    with ScriptedServer([stream("Hel", end="stall")]) as server:
        raw = socket.create_connection((server.host, server.port))
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        raw.recv(10)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        raw.close()
        assert server.wait_disconnected() is not None
    assert server.requests[0].disconnected_by == "reset"


@pytest.mark.parametrize(
    ("exchanges", "requests", "message"),
    [
        ([answer("a"), answer("b")], 1, "1 of 2 exchanges were never asked for"),
        ([answer("a")], 2, "a request beyond the script: GET /v1/x on connection 2"),
        ([stream("a", end="stall", then=[{"await": "disconnect", "within_ms": 50}])], 0, "never asked for"),
    ],
)
def test_what_did_not_go_by_the_script_fails_the_block(
    exchanges: list[dict[str, object]], requests: int, message: str
) -> None:
    with pytest.raises(AssertionError, match=message), ScriptedServer(exchanges) as server:
        assert [get(server).status_code for _ in range(requests)] == [200, 400][:requests]


def test_a_disconnect_that_does_not_come_fails_the_block() -> None:
    script = [{**answer("x"), "before": [{"await": "disconnect", "within_ms": 50}]}]
    with pytest.raises(AssertionError, match=r"did not disconnect within \d+ ms"), ScriptedServer(script) as server:
        get(server)


def test_steps_that_nobody_waited_for_fail_the_block() -> None:
    script = stream("a", then=[{"delay_ms": 300}, {"data": chunk("b")}])
    with pytest.raises(AssertionError, match="the client left with 3 of its steps"), ScriptedServer([script]) as server:
        httpx.stream("GET", server.base_url, trust_env=False).__enter__().close()


def test_leaving_after_an_event_that_may_be_the_last_is_fine() -> None:
    script = stream("a", then=[{"data": {"error": {"message": "x"}}}, {"delay_ms": 300}, {"data": "[DONE]"}])
    with ScriptedServer([script]) as server, httpx.stream("GET", server.base_url, trust_env=False) as response:
        assert any("error" in data for data in response.iter_text())


def test_an_error_inside_the_block_is_kept_and_gets_the_report_as_a_note() -> None:
    with pytest.raises(KeyError) as caught, ScriptedServer([answer("x")]):
        raise KeyError("mine")
    assert caught.value.__notes__ == ["scripted server: 1 of 1 exchanges were never asked for"]


def test_a_lenient_server_reports_nothing_by_itself() -> None:
    with ScriptedServer([answer("x")], strict=False) as server:
        pass
    assert server.problems == ["1 of 1 exchanges were never asked for"]


def test_it_serves_async_code_too() -> None:
    async def main(url: str) -> list[int]:
        async with httpx.AsyncClient(trust_env=False) as client:
            return [response.status_code for response in await asyncio.gather(*(client.get(url) for _ in range(4)))]

    with ScriptedServer([answer("x")] * 4) as server:
        assert asyncio.run(main(server.base_url)) == [200] * 4


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
        ({"status": 200, "steps": [{"end": "well"}]}, "cannot be played"),
        ({"status": 200, "steps": [{"await": "disconnect", "within_ms": "soon"}]}, "within_ms"),
        ({"status": 200, "steps": [{"end": "reset"}, {"data": 1}]}, "steps follow an end"),
        ({"status": 200, "before": [{"data": 1}]}, "before the response head"),
    ],
)
def test_a_script_that_cannot_be_played_is_refused_with_the_reason(exchange: dict[str, object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        parse_exchange(exchange)


def test_nothing_is_left_behind() -> None:
    """Threads and file descriptors are back to what they were, whatever the clients were doing."""
    gc.collect()
    threads, descriptors = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    waiting = [socket.socket() for _ in range(3)]
    with ScriptedServer([stream("x", end="stall"), stream("y", end="reset"), stream("z")], strict=False) as server:
        for each in waiting:
            each.connect((server.host, server.port))
            each.sendall(b"GET / HTTP/1.1\r\n\r\n")
        server.wait_for(lambda: len(server.requests) == 3)
    for each in waiting:
        each.close()
    with ScriptedServer(accepting="no"), ScriptedServer(accepting="silent"):
        pass
    assert set(threading.enumerate()) == threads
    assert len(os.listdir("/proc/self/fd")) == descriptors
