"""An evening's traffic in seconds: clients that lose patience, the embedded engine that they share, and the shim between.

Both sides leave records.  The engine's pace is shared by all that it has at work, as a real one's is: too many at a time,
and nobody is served in time.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.shim.wire import Server, serving

from lastword_shim.engine.embedded import EmbeddedEngine

PATH = "/v1/completions"
PACE = 0.001  # seconds a token takes an engine that has one request


class SharedEngine(EmbeddedEngine):
    """One whose requests slow each other down."""

    @property
    def pace(self) -> float:
        """Seconds a token takes now."""
        return PACE * max(self.running, 1)

    @pace.setter
    def pace(self, _: float) -> None: ...


class Caller:
    """Clients of one evening; ``records`` is what they saw."""

    def __init__(self, server: Server, *, seed: int, deadlines: bool) -> None:
        self._server = server
        self._random = random.Random(seed)
        self._deadlines = deadlines
        self.records: list[dict[str, Any]] = []

    async def evening(self, requests: int, *, rate: float) -> None:
        """Send ``requests``, ``rate`` a second, and wait until each has its end."""
        async with asyncio.TaskGroup() as group:
            for number in range(requests):
                words = self._random.choice((15, 40, 90))
                patience = self._random.uniform(0.3, 0.9)
                group.create_task(self._request(f"req-{number:04d}", words, patience))
                await asyncio.sleep(self._random.expovariate(rate))

    async def _request(self, request_id: str, words: int, patience: float) -> None:
        for attempt in (1, 2, 3):
            word = await self._attempt(request_id, attempt, words, patience)
            if word != "queue_overloaded":
                return
            await asyncio.sleep(0.05 * attempt)

    async def _attempt(self, request_id: str, attempt: int, words: int, patience: float) -> str | None:
        model = "embedded" if words != 15 or attempt > 1 else "embedded-old"  # which nobody serves
        body = {"model": model, "prompt": "one two three", "max_tokens": words, "stream": True}
        headers = {"x-request-id": request_id, "x-request-attempt": str(attempt)}
        if self._deadlines:
            headers["request-timeout-ms"] = str(int(patience * 1000))
        started, wall, told = time.monotonic(), datetime.now(UTC), b""
        word: str | None = "stream_incomplete"
        try:
            async with self._server.connect(body, path=PATH, headers=headers) as (reader, _):
                async with asyncio.timeout(patience):  # from here on: what is never sent leaves the server no record
                    while part := await reader.read(65536):
                        told += part
            word = _last_word(told)
        except TimeoutError:
            word = "generation_timeout"
        self.records.append(_record(request_id, attempt, model, wall, time.monotonic() - started, word, told))
        return word


def _last_word(told: bytes) -> str | None:
    if b"[DONE]" in told:
        return None
    at = told.find(b'"code": "')
    at = told.find(b'"code":"') if at < 0 else at
    return told[at:].split(b'"')[3].decode() if at >= 0 else "stream_incomplete"


def _record(
    request_id: str, attempt: int, model: str, wall: datetime, seconds: float, word: str | None, told: bytes
) -> dict[str, Any]:
    names = json.loads((Path(__file__).parents[2] / "contract/schemas/record.json").read_text(encoding="utf-8"))[
        "required"
    ]
    known: Mapping[str, Any] = {
        "request_id": request_id, "attempt": attempt, "side": "client", "model": model, "endpoint": PATH, "stream": True,
        "received_at": wall.isoformat().replace("+00:00", "Z"), "state": "failed" if word else "completed",
        "outcome": "failed" if word else "completed", "error_code": word, "finish_reasons": [],
        "total_time_ms": round(seconds * 1000, 3), "client_disconnected": False, "wasted": False,
        "completion_tokens": told.count(b'"text"'), "origin": "client" if word == "generation_timeout" else None,
    }  # fmt: skip
    return {name: known.get(name) for name in names}


async def evening(
    folder: Path, name: str, *, requests: int = 150, rate: float = 60, **limits: Any
) -> tuple[Path, Path]:
    """Play one and give its records: the server's file and the clients'."""
    records, seen = folder / f"{name}.jsonl", folder / f"{name}-clients.jsonl"
    async with serving(SharedEngine(), records=str(records), **limits) as server:
        caller = Caller(server, seed=7, deadlines=bool(limits))
        await caller.evening(requests, rate=rate)
        async with asyncio.timeout(10):
            while len(server.records) < len(caller.records):
                await asyncio.sleep(0.01)
    seen.write_text("".join(json.dumps(record) + "\n" for record in caller.records), encoding="utf-8")
    return records, seen
