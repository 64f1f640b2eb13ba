"""Answers that are wrong in ways no client library sends: none of them may become a wrong last word."""

from __future__ import annotations

import gzip
import json
import socket

import pytest
from tests.sdk.raw import WHOLE, RawServer, client_of, event, http
from tests.sdk.wire import AT_ONCE, MESSAGES, SHORT, chunk, takes

from lastword import (
    AsyncClient,
    AuthenticationError,
    InvalidRequest,
    LastwordError,
    RequestTimeout,
    Timeouts,
)

HELLO = event(chunk({"content": "Hello"})["data"]) + event(chunk({}, "stop")["data"]) + event(b"[DONE]")
REFUSED = json.dumps({"error": {"message": "no such key", "code": "unauthorized"}}).encode()


BROKEN_BODIES = {
    "cut": http(REFUSED, status="401 Unauthorized", more=20),
    "no-gzip": http(REFUSED, "content-encoding: gzip", status="401 Unauthorized"),
    "no-chunks": b"HTTP/1.1 401 Unauthorized\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n" + REFUSED,
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("body", BROKEN_BODIES)
def test_a_refusal_whose_body_breaks_off_is_still_a_refusal(body: str, stream: bool) -> None:
    """The status has said no already: that is neither an incomplete answer nor worth a second request."""
    with RawServer(BROKEN_BODIES[body]) as server, client_of(server) as client:
        with pytest.raises(AuthenticationError):
            client.chat.completions.create(model="m", messages=MESSAGES, stream=stream)
        assert len(server.heads) == 1


@pytest.mark.parametrize("location", ["http://[::1", "//[", "http://[bad]/x", "http://127.0.0.1:99999/"])
def test_a_redirect_to_what_is_no_address_is_an_error_that_says_so(location: str) -> None:
    """And not a bare ValueError with the connection left open."""
    moved = http(b"", f"location: {location}", status="307 Temporary Redirect")
    with RawServer(moved) as server, client_of(server) as client:
        with pytest.raises(InvalidRequest) as caught:
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert location in caught.value.message


def test_no_key_of_any_name_follows_a_redirect_to_another_server() -> None:
    """Gateways take keys in headers of their own; only what every server may know goes along."""
    headers = {"api-key": "secret", "x-api-key": "secret", "cookie": "secret"}
    with RawServer(http(WHOLE)) as other:
        moved = http(b"", f"location: {other.base_url}/chat/completions", status="307 Temporary Redirect")
        with RawServer(moved) as server, client_of(server, default_headers=headers) as client:
            client.chat.completions.create(model="m", messages=MESSAGES, extra_headers={"x-token": "secret"})
            assert "secret" in server.heads[0]
        assert "secret" not in other.heads[0]
        assert "the-key" not in other.heads[0]
        assert "x-request-id" in other.heads[0]


def test_a_header_that_a_proxy_adds_once_more_counts_once() -> None:
    """Two content types that agree are no other content type, and two words against a retry are a word against it."""
    twice = http(HELLO, "content-type: text/event-stream", kind="text/event-stream")
    with RawServer(twice) as server, client_of(server) as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        assert [part.choices[0].delta.content for part in stream] == ["Hello", None]
    busy = http(b"{}", "x-should-retry: false", "x-should-retry: false", status="503 Busy")
    with RawServer(busy) as server, client_of(server) as client:
        with pytest.raises(LastwordError):
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert len(server.heads) == 1


def test_what_a_server_sends_behind_its_answer_is_nobodys_answer() -> None:
    """A second response in the same breath would become the answer to the next request on that connection."""
    extra = WHOLE.replace(b"Hello", b"for somebody else")

    def answer(connection: socket.socket, number: int) -> bool:
        connection.sendall(http(WHOLE) + (http(extra) if number == 1 else b""))
        return True

    with RawServer(answer) as server, client_of(server) as client:
        for _ in range(3):
            done = client.chat.completions.create(model="m", messages=MESSAGES)
            assert done.choices[0].message.content == "Hello"
        assert server.connections == 2


@pytest.mark.anyio
async def test_what_a_server_sends_behind_its_answer_is_nobodys_answer_async() -> None:
    """The same for the async client, with a stream in chunked framing."""
    extra = HELLO.replace(b"Hello", b"for somebody else")

    def answer(connection: socket.socket, number: int) -> bool:
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(HELLO), HELLO)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.sendall(head + chunked + (http(extra, kind="text/event-stream") if number == 1 else b""))
        return True

    with RawServer(answer) as server:
        async with AsyncClient(base_url=server.base_url, api_key="k", timeouts=SHORT) as client:
            for _ in range(3):
                stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
                async for _ in stream:
                    pass
                assert stream.text == "Hello"
        assert server.connections == 2


FLOODS = {
    "comments": b": ping\n\n" * 5000,
    "pings": event({"ping": 1}) * 3000,
    "empty deltas": event(chunk({"content": ""})["data"]) * 1000,
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_without_content_holds_no_timer_up(flood: str) -> None:
    """The time it takes to read what the server sends is the server's, not the caller's."""

    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            connection.sendall(FLOODS[flood])

    timeouts = Timeouts(connect=5, first_token=0.3, idle=5, total=8)
    with RawServer(answer) as server, client_of(server) as client, takes(0.3, 0.3 + AT_ONCE):
        with pytest.raises(RequestTimeout) as caught:
            for _ in client.chat.completions.create(model="m", messages=MESSAGES, stream=True, timeout=timeouts):
                pass
        assert caught.value.timer == "first_token"


def test_a_page_of_titles_is_read_at_once() -> None:
    """Looking for the end of each title in all that follows would take minutes that no timer sees."""
    page = http(b"<title>" * 140_000, status="502 Bad Gateway", kind="text/html")
    with RawServer(page) as server, client_of(server, 1) as client, takes(0, AT_ONCE):
        with pytest.raises(LastwordError) as caught:
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert caught.value.code == "bad_gateway"


def test_an_integer_beyond_every_float_is_kept_as_it_came() -> None:
    """Where the openai package's type has a float."""
    huge = 10**400
    logprobs = {"content": [{"token": "a", "logprob": huge, "bytes": None, "top_logprobs": []}]}
    answer = json.loads(WHOLE)
    answer["choices"][0]["logprobs"] = logprobs
    with RawServer(http(json.dumps(answer).encode())) as server, client_of(server) as client:
        done = client.chat.completions.create(model="m", messages=MESSAGES)
        assert done.choices[0].model_dump()["logprobs"]["content"][0]["logprob"] == huge


def test_a_redirect_that_goes_round_is_followed_five_times_and_not_retried() -> None:
    """Whoever set it up so must mend it; the same request goes round again."""
    with RawServer(http(b"", "location: ?", status="307 Temporary Redirect")) as server, client_of(server) as client:
        with pytest.raises(InvalidRequest, match="redirects"):
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert len(server.heads) == 6


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_an_answer_without_end_does_not_fill_the_memory(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted as it comes out of its packing."""
    monkeypatch.setattr("lastword._wire.MAX_ANSWER", 1 << 20)
    body = b'{"choices": "' + b" " * (4 << 20)
    answer = http(gzip.compress(body), "content-encoding: gzip") if packed else http(body)
    with RawServer(answer) as server, client_of(server, 1) as client:
        with pytest.raises(LastwordError, match="larger than") as caught:
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert caught.value.code == "malformed_response"
