"""Answers that are wrong in ways no client library sends: none of them may become a wrong last word."""

from __future__ import annotations

import json

import pytest
from tests.sdk.raw import WHOLE, RawServer, event, http
from tests.sdk.wire import MESSAGES, SHORT, chunk

from lastword import AuthenticationError, Client, InvalidRequest, LastwordError, RetryPolicy

HELLO = event(chunk({"content": "Hello"})["data"]) + event(chunk({}, "stop")["data"]) + event(b"[DONE]")
REFUSED = json.dumps({"error": {"message": "no such key", "code": "unauthorized"}}).encode()


def client_of(server: RawServer, attempts: int = 3, **options: object) -> Client:
    """A client whose retries come at once."""
    retry = RetryPolicy(max_attempts=attempts, base_delay=0.01, max_delay=0.02)
    return Client(base_url=server.base_url, api_key="the-key", retry=retry, timeouts=SHORT, **options)  # type: ignore[arg-type]


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
