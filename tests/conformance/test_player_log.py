"""The scripted server itself: what it notices, what it reports, what it leaves behind."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
import time
from itertools import pairwise

import httpx
import pytest

from lastword.testing import ScriptedServer, answer, chunk, failure, stream


def get(server: ScriptedServer, path: str = "/v1/x", **options: float) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=options.get("timeout", 5.0)) as client:
        return client.get(server.origin + path)


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


def test_the_wire_is_logged_on_request() -> None:
    with ScriptedServer([stream("a", end="truncate")], keep_log=True, strict=False) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            get(server)
    log = server.log
    assert log is not None
    assert [(entry.what, entry.text) for entry in log] == [
        ("opened", ""),
        ("request", "GET /v1/x HTTP/1.1"),
        ("sent", "head"),
        ("sent", "body"),
        ("sent", "body"),
        ("end", "truncate"),
        ("client", "closed"),
    ]
    assert log[2].data.startswith(b"HTTP/1.1 200 ")
    assert all(before.at <= after.at for before, after in pairwise(log))


def test_the_log_keeps_the_beginning_of_what_is_long_and_nothing_unasked() -> None:
    exchange = {"status": 200, "steps": [{"text": 9000 * "y"}]}
    with ScriptedServer([exchange], segmentation="1", keep_log=True) as server:
        assert get(server).text == 9000 * "y"
    assert server.log is not None
    assert [(entry.size, entry.data) for entry in server.log if entry.text == "body"] == [(9000, 2000 * b"y")]
    with ScriptedServer([exchange]) as server:
        get(server)
    assert server.log is None


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


def test_connections_that_are_just_being_accepted_are_closed_too() -> None:
    """A socket that is left open warns when it is collected, and warnings are errors here."""
    for _ in range(20):
        with ScriptedServer() as server:
            clients = [socket.create_connection((server.host, server.port)) for _ in range(5)]
        for each in clients:
            each.close()
    gc.collect()
