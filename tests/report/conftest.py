"""Records for the tests of `lastword report`: an evening that was played, and single ones."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.report.traffic import evening

from lastword.conformance._schemas import violations


class Evenings(NamedTuple):
    """The files of two evenings of the same traffic: without limits, and with."""

    before: Path
    before_clients: Path
    after: Path
    after_clients: Path


@pytest.fixture(scope="session")
def evenings(tmp_path_factory: pytest.TempPathFactory) -> Evenings:
    """Played once: some seconds."""
    folder = tmp_path_factory.mktemp("evenings")

    async def play() -> Evenings:
        before = await evening(folder, "before", requests=80)
        after = await evening(folder, "after", requests=80, max_inflight=6, max_queued=6, queue_timeout=0.3)
        return Evenings(*before, *after)

    return asyncio.run(play())


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def record(number: int = 0, **members: Any) -> dict[str, Any]:
    """A record of a completed attempt, received ``number`` seconds after six, with other members as given."""
    hours, minutes, seconds = 18 + number // 3600, number // 60 % 60, number % 60
    made = {
        "request_id": f"req-{number}", "attempt": 1, "side": "server", "model": "m", "endpoint": "/v1/chat/completions",
        "stream": True, "received_at": f"2026-01-01T{hours:02}:{minutes:02}:{seconds:02}Z", "state": "completed",
        "outcome": "completed", "error_code": None, "origin": None, "http_status": 200, "finish_reasons": ["stop"],
        "prompt_tokens": 12, "max_tokens": 512, "effective_max_tokens": 512, "completion_tokens": 40, "queue_time_ms": 3.0,
        "time_to_first_token_ms": 80.0, "generation_time_ms": 900.0, "total_time_ms": 1000.0, "deadline_ms": None,
        "timeout_kind": None, "client_disconnected": False, "disconnect_phase": None, "tokens_at_disconnect": None,
        "tokens_after_disconnect": None, "generation_time_after_disconnect_ms": None, "wasted": False, **members,
    }  # fmt: skip
    assert violations("record", made) == []
    return made


def rejected(number: int = 0, **members: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("completion_tokens", "queue_time_ms", "time_to_first_token_ms", "generation_time_ms"))
    told = {
        "state": "rejected",
        "outcome": "failed",
        "error_code": "queue_overloaded",
        "origin": "shim",
        "http_status": 503,
    }
    return record(number, **{**nothing, **told, "finish_reasons": [], **members})


def poll(number: int = 0, **members: Any) -> dict[str, Any]:
    """Of a request that asked for no work."""
    nothing = dict.fromkeys(("model", "stream", "completion_tokens", "prompt_tokens", "queue_time_ms"))
    told: dict[str, Any] = {"endpoint": "/v1/models", "operation": None, "finish_reasons": []}
    return record(number, **{**nothing, **told, **members})


def gone(number: int = 0, **members: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "state": "cancelled", "outcome": "cancelled", "error_code": "client_disconnected", "origin": "client",
        "http_status": 499, "client_disconnected": True, "disconnect_phase": "generating", "tokens_at_disconnect": 38,
        "tokens_after_disconnect": 2, "generation_time_after_disconnect_ms": 20.0, "wasted": True,
    }  # fmt: skip
    return record(number, **{**told, **members})


def write(path: Path, *lines: dict[str, Any] | str) -> Path:
    path.write_text(
        "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines), encoding="utf-8"
    )
    return path
