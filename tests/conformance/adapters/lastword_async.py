"""lastword's async client: streams by iteration, which raises, and other calls through ``with_outcome``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lastword_words import CAPABILITIES, NOTE, Reading, answered, create, options, report
from protocol import serve

from lastword import AsyncClient, LastwordError, __version__

# What the caller of a cancelled task has in hand if there is no stream yet: the CancelledError, and nothing else.
CANCELLED = {"outcome": "cancelled", "code": "cancelled", "text": ""}


def run(case: Mapping[str, Any]) -> dict[str, Any]:
    return asyncio.run(play(case))


async def play(case: Mapping[str, Any]) -> dict[str, Any]:
    call = case["call"]
    async with AsyncClient(**options(case)) as client:
        for _ in range(call["repeat"]):
            readings: list[Reading] = []
            task = asyncio.ensure_future(make(client, call, readings))
            if "after_ms" in (call["cancel"] or {}):
                asyncio.get_running_loop().call_later(call["cancel"]["after_ms"] / 1000, task.cancel)
            try:
                result = await task
            except asyncio.CancelledError:  # the caller's own cancellation reaches the caller, as it must
                result = readings[0].report() if readings else CANCELLED
    return result


async def make(client: AsyncClient, call: Mapping[str, Any], readings: list[Reading]) -> dict[str, Any]:
    if not call["stream"]:
        return answered(*await create(client.with_outcome, call))
    try:
        stream = await create(client, call)
    except LastwordError as error:
        return report(error)
    readings.append(reading := Reading(stream, call))
    try:
        async for chunk in stream:
            if reading.last(chunk):
                await stream.aclose()
                break
    except LastwordError as error:
        return reading.report(error)
    return reading.report()


if __name__ == "__main__":
    serve(run, name="lastword-async", version=__version__, capabilities=CAPABILITIES, note=NOTE)
