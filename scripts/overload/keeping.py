"""What a run leaves as files: the result, the traces, every attempt, and the shim's records."""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from overload.arms import LANES, Arm, Limits
from overload.calls import Call
from overload.capacity import Capacity
from overload.playing import Played, plain


def head(options: argparse.Namespace, capacity: Capacity, rate: float, limits: Limits, *, vllm: str) -> dict[str, Any]:
    """The result's first part: what was measured with what."""
    return {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": {
            "vllm": vllm,
            "lastword": importlib.metadata.version("lastword"),
            "python": platform.python_version(),
        },
        "load": options.load,
        "seconds": options.seconds,
        "patience": options.patience,
        "callers": options.callers,
        "engine_lanes": LANES,
        "capacity": {name: round(value, 3) for name, value in asdict(capacity).items()},
        "offered_calls_per_second": round(rate, 3),
        "limits": asdict(limits),
        "runs": [],
    }


def keep_raw(folder: Path, seed: int, arm: Arm, played: Played) -> None:
    """Every attempt of one arm, and the shim's records."""
    _write(folder / f"attempts-{seed}-{arm.name}.jsonl.gz", plain(played.attempts))
    if played.records:
        _write(folder / f"records-{seed}-{arm.name}.jsonl.gz", played.records)


def keep_trace(folder: Path, seed: int, calls: Sequence[Call]) -> None:
    """The calls of one seed."""
    _write(folder / f"trace-{seed}.jsonl.gz", plain(calls))


def keep_result(folder: Path, result: Mapping[str, Any]) -> None:
    """What the table is made from."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def load(folder: Path) -> dict[str, Any]:
    """What `keep_result` wrote.

    Raises:
        OSError: it is not there.
    """
    result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return result


def load_trace(path: Path) -> list[Call]:
    """The calls that `keep_trace` wrote.

    Raises:
        ValueError: a line is no call; the message names it.
        OSError: there is no such file.
    """
    calls = []
    for number, line in enumerate(gzip.decompress(path.read_bytes()).decode().splitlines(), 1):
        try:
            calls.append(Call(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}, line {number} is no call of a trace: {error}") from error
    return calls


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    # No time in the head, so that the same rows make the same file.
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
