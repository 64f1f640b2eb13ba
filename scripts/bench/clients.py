"""The clients that the bench compares: each reads one chat stream and returns (chunks with text, characters of text).

All do the same with what they get: look at the first choice's text. Imports are inside, so that a process loads only its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

Counts = tuple[int, int]
Read = Callable[[int], Counts]


def body(chunks: int, mode: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": mode}], "max_tokens": chunks}


def lastword(url: str, mode: str) -> Read:
    from lastword import Client

    client = Client(base_url=url, api_key="k")

    def read(chunks: int) -> Counts:
        count = size = 0
        with client.chat.completions.create(**body(chunks, mode), stream=True) as stream:
            for chunk in stream:
                if chunk.choices and (text := chunk.choices[0].delta.content):
                    count += 1
                    size += len(text)
        return count, size

    return read


def lastword_async(url: str, mode: str) -> Read:
    from lastword import AsyncClient

    client = AsyncClient(base_url=url, api_key="k")

    async def stream_once(chunks: int) -> Counts:
        count = size = 0
        async with await client.chat.completions.create(**body(chunks, mode), stream=True) as stream:
            async for chunk in stream:
                if chunk.choices and (text := chunk.choices[0].delta.content):
                    count += 1
                    size += len(text)
        return count, size

    runner = asyncio.Runner()
    return lambda chunks: runner.run(stream_once(chunks))


def openai(url: str, mode: str) -> Read:
    from openai import OpenAI

    client: Any = OpenAI(base_url=url, api_key="k")

    def read(chunks: int) -> Counts:
        count = size = 0
        with client.chat.completions.create(**body(chunks, mode), stream=True) as stream:
            for chunk in stream:
                if chunk.choices and (text := chunk.choices[0].delta.content):
                    count += 1
                    size += len(text)
        return count, size

    return read


def openai_async(url: str, mode: str) -> Read:
    from openai import AsyncOpenAI

    client: Any = AsyncOpenAI(base_url=url, api_key="k")

    async def stream_once(chunks: int) -> Counts:
        count = size = 0
        async with await client.chat.completions.create(**body(chunks, mode), stream=True) as stream:
            async for chunk in stream:
                if chunk.choices and (text := chunk.choices[0].delta.content):
                    count += 1
                    size += len(text)
        return count, size

    runner = asyncio.Runner()
    return lambda chunks: runner.run(stream_once(chunks))


def by_hand(url: str, mode: str) -> Read:
    import httpx

    client = httpx.Client()

    def read(chunks: int) -> Counts:
        count = size = 0
        asked = {**body(chunks, mode), "stream": True}
        with client.stream("POST", f"{url}/chat/completions", json=asked, timeout=60) as response:
            for line in response.iter_lines():
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                choices = json.loads(line[6:])["choices"]
                if choices and (text := choices[0]["delta"].get("content")):
                    count += 1
                    size += len(text)
        return count, size

    return read


CLIENTS: dict[str, Callable[[str, str], Read]] = {
    "lastword": lastword,
    "lastword async": lastword_async,
    "openai": openai,
    "openai async": openai_async,
    "httpx by hand": by_hand,
}
