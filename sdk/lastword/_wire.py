"""One attempt's exchange over a transport: send, follow 307 and 308, read.  Sync and async differ in ``await`` only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final, cast
from urllib.parse import urljoin, urlsplit

import httpx

from lastword._call import MAX_ERROR_BODY, Answer, Call
from lastword._classify import make_error
from lastword._codes import Code
from lastword._errors import LastwordError
from lastword._transport._guard import MAX_DRAIN, AsyncGuard
from lastword._transport._httpx import RAISED
from lastword._transport._pool import close_unused, spoil_if_more_came, to_the_end
from lastword._url import shown_url

MAX_ANSWER: Final = 256 * 1024 * 1024
"""How large an answer that is no stream may be, in bytes: what never ends, or was packed to burst, must not fill the memory."""

REFUSAL_SECONDS: Final = 3.0
"""How long the body of a refusal may take: its status is known, and the body only explains it."""

_MAX_REDIRECTS: Final = 5
_FOR_ANYBODY: Final = frozenset(
    ("user-agent", "accept", "content-type", "x-request-id", "x-request-attempt", "request-timeout-ms")
)
_EVENT_STREAM: Final = ("", "text/event-stream")  # a missing content type is no claim to be something else


def send(transport: httpx.HTTPTransport, base_url: str, call: Call) -> httpx.Response:
    """Begin an attempt and return its answer's head; raises ``LastwordError``."""
    headers, url = call.begin_attempt(), base_url + call.request.path
    for _ in range(_MAX_REDIRECTS + 1):
        try:
            response = transport.handle_request(_request(call, url, headers))
        except RAISED as error:
            raise call.broken(error) from error
        url = _received(call, response, url, headers)
        if not url:
            return response
        response.close()
    raise _astray(call, url)


def read(call: Call, response: httpx.Response, *, limit: int) -> bytes:
    """Read the body, at most ``limit`` bytes of it, and let the connection go."""
    parts: list[bytes] = []
    size = 0
    if call.is_refused:
        call.guard.drain(REFUSAL_SECONDS)
    try:
        for part in body_of(response):
            parts.append(part)
            size += len(part)
            if size > limit:
                break
    except RAISED as error:
        if not call.is_refused:
            raise call.broken(error) from error
    finally:
        let_go(call, response)
    return _joined(call, parts, size)


def body_of(response: httpx.Response) -> Iterator[bytes]:
    """The body in the pieces it arrives in, decoded if it is encoded."""
    if "content-encoding" in response.headers:
        return response.iter_bytes()
    return iter(cast(httpx.SyncByteStream, response.stream))


def drain(call: Call, response: httpx.Response, body: Iterator[bytes]) -> None:
    """Read what follows the terminal event, within limits, so that the connection can be used again."""
    call.guard.drain()
    size = 0
    try:
        for part in body:
            size += len(part)
            if size > MAX_DRAIN:
                break
    except RAISED:
        pass  # the outcome is fixed; the connection is closed instead
    finally:
        let_go(call, response)


def let_go(call: Call, response: httpx.Response) -> None:
    """Close the response: the connection goes back to the pool if its body was read, else it is closed."""
    call.guard.release()  # first: once the pool has it, the connection may serve another call, and no cancel of ours
    spoil_if_more_came(response)
    response.close()


async def async_send(transport: httpx.AsyncHTTPTransport, base_url: str, call: Call) -> httpx.Response:
    """As ``send``."""
    headers, url = call.begin_attempt(), base_url + call.request.path
    for _ in range(_MAX_REDIRECTS + 1):
        try:
            response = await transport.handle_async_request(_request(call, url, headers))
        except RAISED as error:
            raise call.broken(error) from error
        except BaseException:
            await to_the_end(close_unused(transport, cast(AsyncGuard, call.guard)))
            raise
        url = _received(call, response, url, headers)
        if not url:
            return response
        await to_the_end(response.aclose())
    raise _astray(call, url)


async def async_read(call: Call, response: httpx.Response, *, limit: int) -> bytes:
    """As ``read``."""
    parts: list[bytes] = []
    size = 0
    if call.is_refused:
        call.guard.drain(REFUSAL_SECONDS)
    try:
        async for part in async_body_of(response):
            parts.append(part)
            size += len(part)
            if size > limit:
                break
    except RAISED as error:
        if not call.is_refused:
            raise call.broken(error) from error
    finally:
        await async_let_go(call, response)
    return _joined(call, parts, size)


def async_body_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """As ``body_of``."""
    if "content-encoding" in response.headers:
        return response.aiter_bytes()
    return aiter(cast(httpx.AsyncByteStream, response.stream))


async def async_drain(call: Call, response: httpx.Response, body: AsyncIterator[bytes]) -> None:
    """As ``drain``."""
    call.guard.drain()
    size = 0
    try:
        async for part in body:
            size += len(part)
            if size > MAX_DRAIN:
                break
    except RAISED:
        pass
    finally:
        await async_let_go(call, response)


async def async_let_go(call: Call, response: httpx.Response) -> None:
    """As ``let_go``."""
    call.guard.release()
    spoil_if_more_came(response)
    await to_the_end(response.aclose())


def is_stream(call: Call) -> bool:
    """Whether the answer at hand is a stream of events; if not, its body is an error or cannot be read."""
    assert call.answer is not None
    media_type = call.answer.headers.get("content-type", "").partition(";")[0].partition(",")[0].strip().lower()
    return 200 <= call.answer.status < 300 and media_type in _EVENT_STREAM


def no_stream(call: Call, body: bytes) -> Exception:
    """The error for an answer to a stream request that is no stream."""
    assert call.answer is not None
    kind = call.answer.headers.get("content-type", "")
    what = f"HTTP {call.answer.status} with the content type {kind!r} where text/event-stream was expected"
    return call.refusal(body) or call.malformed(what, body)


def body_limit(call: Call) -> int:
    """How much of the body to read: as good as all of a success, little of anything else."""
    assert call.answer is not None
    return MAX_ANSWER if 200 <= call.answer.status < 300 and not call.request.stream else MAX_ERROR_BODY


def _joined(call: Call, parts: list[bytes], size: int) -> bytes:
    if size > MAX_ANSWER:
        raise call.malformed(f"the answer is larger than {MAX_ANSWER} bytes", b"")
    return b"".join(parts)


def _astray(call: Call, url: str) -> LastwordError:
    last = shown_url(url)
    message = f"more than {_MAX_REDIRECTS} redirects, the last to {last}: look at base_url and at what is in front of the server"
    return call.error(make_error(Code.INVALID_REQUEST_ERROR, message))


def _request(call: Call, url: str, headers: dict[str, str]) -> httpx.Request:
    guard = call.guard  # httpcore hands these to our network backend as they are
    timeouts = {"connect": guard, "read": guard, "write": guard, "pool": None}
    request = call.request
    return httpx.Request(
        request.method, url, headers=headers, content=request.content, extensions={"timeout": timeouts}
    )


def _received(call: Call, response: httpx.Response, url: str, headers: dict[str, str]) -> str:
    """Note the answer's head; returns where to go instead, "" if the answer is here (RFC 9110 §15.4.8, §15.4.9)."""
    location: str = response.headers.get("location", "")
    target = _target(url, location) if response.status_code in (307, 308) and location else ""
    if target:
        if urlsplit(target)[:2] != urlsplit(url)[:2]:
            for name in headers.keys() - _FOR_ANYBODY:  # whatever is a key is for the server that the caller named
                del headers[name]
        return target
    fields = reversed(response.headers.multi_items())  # of a field that a proxy added once more, the first counts
    call.answer = Answer(response.status_code, dict(fields))
    return ""


def _target(url: str, location: str) -> str:
    """Where a redirect leads; "" if that is no address."""
    try:
        target = urljoin(url, location)
        urlsplit(target).port  # noqa: B018 (reading it is the check)
    except ValueError:
        return ""
    return target
