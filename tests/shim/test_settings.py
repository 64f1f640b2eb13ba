"""What an operator reads: the settings' descriptions, what is said at start, and docs/shim.md, which leaves nothing out."""

from __future__ import annotations

import json
import logging
import pydoc
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Counter, Histogram
from tests.shim.engines import Counting
from tests.shim.test_start import never
from tests.shim.wire import conforms

from lastword import _contract
from lastword_shim import Settings, Shim
from lastword_shim._settings import PREFIX
from lastword_shim._start import start_line, unknown_names
from lastword_shim.account.metrics import metrics

UNKNOWN = "engine: none that it knows, so it sees only what passes; "
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "shim.md").read_text(encoding="utf-8")
RECORDS = (DOCS / "records.md").read_text(encoding="utf-8")


def test_help_tells_what_each_setting_means_its_unit_and_its_default() -> None:
    """Pydantic does not do so by itself."""
    told = pydoc.plain(pydoc.render_doc(Settings))
    for name, field in Settings.model_fields.items():
        assert field.description is not None
        assert f"{PREFIX}{name.upper()}: {field.description}" in told
        assert re.search(r" \([\w, -]+; default \w[\w.]*\)$", field.description)


def test_names_that_nobody_reads_are_named_with_the_nearest_that_is_read() -> None:
    """Not those of the SDK, and never what a variable holds; their case does not matter."""
    mistaken = ["LASTWORD_IDEL_TIMEOUT", "LASTWORD_Q", "lastword_holdd"]
    fine = ["LASTWORD_BASE_URL", "LASTWORD_API_KEY", "LASTWORD_HOLD", "lastword_records", "PATH"]
    assert unknown_names([*fine, *mistaken]) == (
        "unknown settings, which have no effect: LASTWORD_IDEL_TIMEOUT (nearest: LASTWORD_IDLE_TIMEOUT), LASTWORD_Q, "
        "lastword_holdd (nearest: LASTWORD_HOLD)"
    )
    assert unknown_names(fine) is None


@pytest.mark.parametrize("given", [None, Settings()])
def test_a_misspelt_variable_is_one_warning_at_start(
    given: Settings | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the environment is read at all."""
    monkeypatch.setenv("LASTWORD_IDEL_TIMEOUT", "secret")
    with caplog.at_level(logging.WARNING, "lastword_shim"):
        Shim(never, settings=given)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == (given is None)
    assert all("LASTWORD_IDLE_TIMEOUT" in line and "secret" not in line for line in lines)


@pytest.mark.parametrize(
    ("settings", "engine", "line", "remark"),
    [
        ({}, None, UNKNOWN + "settings: defaults", ""),
        (
            {"hold": 0.5, "max_inflight": 3, "records": "-"},
            None,
            UNKNOWN + "settings: LASTWORD_RECORDS=-, LASTWORD_MAX_INFLIGHT=3, LASTWORD_HOLD=0.5",
            "",
        ),
        (
            {"context_policy": "clamp", "idle_timeout": 15},
            Counting(),
            "engine: scripted; settings: LASTWORD_IDLE_TIMEOUT=15, LASTWORD_CONTEXT_POLICY=clamp",
            "",
        ),
        ({"endpoints": False, "otel": True}, None, UNKNOWN + "settings: LASTWORD_ENDPOINTS=off, LASTWORD_OTEL=on", ""),
        (
            {"context_policy": "clamp"},
            None,
            UNKNOWN + "settings: LASTWORD_CONTEXT_POLICY=clamp",
            "LASTWORD_CONTEXT_POLICY=clamp has no effect here: the lengths of prompts cannot be seen",
        ),
        (
            {"idle_timeout": 15, "queue_timeout": 0.5, "total_timeout": 60},
            None,
            UNKNOWN + "settings: LASTWORD_QUEUE_TIMEOUT=0.5, LASTWORD_IDLE_TIMEOUT=15, LASTWORD_TOTAL_TIMEOUT=60",
            (
                "answers that are no streams are not limited by LASTWORD_QUEUE_TIMEOUT, LASTWORD_IDLE_TIMEOUT "
                "once the engine has the request"
            ),
        ),
        (
            {"max_queued": 5, "max_queued_tokens": 10},
            None,
            UNKNOWN + "settings: LASTWORD_MAX_QUEUED=5, LASTWORD_MAX_QUEUED_TOKENS=10",
            (
                "prompts are measured by their size, and not by their tokens, for LASTWORD_MAX_QUEUED_TOKENS; "
                "LASTWORD_MAX_QUEUED without LASTWORD_MAX_INFLIGHT counts a request without a stream until its end"
            ),
        ),
        (
            {"queue_timeout": 30, "first_token_timeout": 10, "total_timeout": 60},
            Counting(),
            (
                "engine: scripted; settings: LASTWORD_QUEUE_TIMEOUT=30, LASTWORD_FIRST_TOKEN_TIMEOUT=10, "
                "LASTWORD_TOTAL_TIMEOUT=60"
            ),
            "LASTWORD_QUEUE_TIMEOUT ends nothing: LASTWORD_FIRST_TOKEN_TIMEOUT is always sooner",
        ),
        (
            {"max_queued": 0},
            Counting(),
            "engine: scripted; settings: LASTWORD_MAX_QUEUED=0",
            "LASTWORD_MAX_QUEUED=0 without LASTWORD_MAX_INFLIGHT refuses every request to the engine",
        ),
    ],
)
def test_the_start_line_tells_what_is_set_and_what_of_it_does_nothing(
    settings: dict[str, Any], engine: Any, line: str, remark: str
) -> None:
    """A warning only where a setting does not do what it says."""
    expected = "; ".join(part for part in (line, remark) if part)
    assert start_line(Settings(**settings), engine) == (logging.WARNING if remark else logging.INFO, expected)


def test_the_page_has_every_setting_as_it_is_described_and_no_other() -> None:
    """The rows are the fields' descriptions."""
    expected = [f"| `{name}` | {' | '.join(told)} |" for name, *told in Settings.table()]
    assert len(expected) == len(Settings.model_fields)
    rows = [line for line in PAGE.splitlines() if line.startswith(f"| `{PREFIX}")]
    assert rows == [row.replace("``", "`") for row in expected]
    assert set(re.findall(rf"{PREFIX}([A-Z_]+)", PAGE)) == {name.upper() for name in Settings.model_fields}


def test_the_page_has_every_metric_with_its_labels() -> None:
    """And no other."""
    expected = {}
    for metric in vars(metrics()).values():
        assert isinstance(metric, Counter | Histogram)
        name = next(iter(metric.describe())).name + ("_total" if isinstance(metric, Counter) else "")
        expected[name] = sorted(metric._labelnames)
    rows = re.findall(r"^\| `(lastword_\w+)` \| (.*?) ?\|", PAGE, re.MULTILINE)
    assert {name: sorted(re.findall(r"`(\w+)`", labels)) for name, labels in rows} == expected


def test_the_page_has_every_member_of_a_record_and_an_example_that_is_valid() -> None:
    """In the schema's order."""
    (block,) = re.findall(r"```json\n(.*?)```", RECORDS, re.DOTALL)
    example = json.loads(block)
    conforms(example, "record")
    members = list(_contract.schemas()["urn:lastword:contract:1:record"]["properties"])
    section = RECORDS.partition("| Member | Meaning |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == members == list(example)
