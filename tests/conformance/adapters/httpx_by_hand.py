"""httpx and httpx-sse by hand: what a careful developer writes in ten minutes, for chat completions."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
from typing import Any

import httpx
from caller import Call, Heard, Result, make
from codes import class_code, failed
from httpx_sse import SSEError, aconnect_sse
from protocol import serve


class ServerError(Exception):
    """The server answered with an error, or sent one within the stream."""

    def __init__(self, error: Any, status: int | None = None) -> None:
        error = error if isinstance(error, dict) else {"message": error}
        super().__init__(error.get("message"))
        self.code, self.param, self.status = error.get("code"), error.get("param"), status


CODES = {  # the most special class first; anything else was not expected in the answer: it could not be read
    ServerError: "internal_server_error",
    httpx.ConnectTimeout: "connect_timeout",
    SSEError: "malformed_response",
    httpx.TransportError: "connection_failed",
}
NOTE = "Thirty lines: status, error objects, [DONE]; codes from the error's code, else the HTTP status, else httpx's class."


def opened(case: Call) -> httpx.AsyncClient:
    timeout = httpx.Timeout(60, connect=case["call"]["timeouts"].get("connect", 5))
    headers = {"Authorization": f"Bearer {case['api_key']}"}
    return httpx.AsyncClient(base_url=case["base_url"], headers=headers, timeout=timeout)


async def read(client: httpx.AsyncClient, call: Call, heard: Heard) -> None:
    if not call["stream"]:
        response = await client.post("/chat/completions", json=call["request"])
        answer = checked(response)
        heard.text = answer["choices"][0]["message"]["content"] or ""
        return
    async with aconnect_sse(client, "POST", "/chat/completions", json=call["request"]) as events:
        if not events.response.is_success:
            await events.response.aread()
            checked(events.response)
        heard.begun = True
        async for event in events.aiter_sse():
            if event.data == "[DONE]":
                break
            chunk = event.json()
            if chunk.get("error"):
                raise ServerError(chunk["error"])
            if chunk["choices"]:
                heard.text += chunk["choices"][0]["delta"].get("content") or ""
            heard.event_over()


def checked(response: httpx.Response) -> Any:
    """The JSON of a good answer."""
    try:
        body = response.json()
    except json.JSONDecodeError:
        if response.is_success:
            raise
        raise ServerError(response.text, response.status_code) from None
    if not response.is_success or body.get("error"):
        raise ServerError(body.get("error", body) if isinstance(body, dict) else body, response.status_code)
    return body


def failure(error: Exception) -> Result:
    said = {name: getattr(error, name) for name in ("code", "param", "status") if hasattr(error, name)}
    return failed(class_code(error, CODES), message=str(error), **said)


if __name__ == "__main__":
    serve(
        lambda case: asyncio.run(make(case, opened, read, failure)),
        name="httpx-sse",
        version=importlib.metadata.version("httpx-sse"),
        capabilities=["cancel", "connect"],
        note=NOTE,
    )
