"""What a line must be to be counted: a record, as far as the account looks at it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from lastword._classify import is_request_id

_TIMES: Final = (
    *("queue_time_ms", "time_to_first_token_ms", "generation_time_ms", "total_time_ms"),
    "generation_time_after_disconnect_ms",
)
_COUNTS: Final = ("completion_tokens", "tokens_after_disconnect")
_SWITCHES: Final = ("client_disconnected", "wasted")
_SIDES: Final = frozenset({"server", "client"})
_OUTCOMES: Final = frozenset({"completed", "failed", "cancelled", "incomplete"})
_MOST: Final = 1e15  # what is larger is no time and no count
_SHOWN: Final = 40


class NotARecordError(ValueError):
    """The line is no record; the message says why."""


def parse(line: bytes) -> tuple[datetime, dict[str, Any]]:
    """When the attempt was received, and its record.

    Raises:
        NotARecordError: it is none.
    """
    try:
        record = json.loads(str(line, "utf-8").rstrip())
    except RecursionError:
        raise NotARecordError("no JSON that can be read") from None
    except UnicodeDecodeError:
        raise NotARecordError("no JSON: not UTF-8") from None
    except ValueError as error:  # or a number of thousands of digits
        what = getattr(error, "msg", "a number that is too long")
        raise NotARecordError(f"no JSON: {what}") from None
    if type(record) is not dict:
        raise NotARecordError("no JSON object")
    try:
        received = datetime.fromisoformat(record["received_at"])
        _check(record)
    except KeyError as error:
        raise NotARecordError(f"no record: it has no {error.args[0]}") from None
    except (TypeError, ValueError) as error:
        if isinstance(error, NotARecordError):
            raise
        raise NotARecordError(f"no record: received_at is {_shown(record['received_at'])}") from None
    if received.tzinfo is None:
        raise NotARecordError("no record: received_at has no time zone")
    return received, record


def _check(record: dict[str, Any]) -> None:
    for name in _TIMES:
        value = record[name]
        if value is not None and not (type(value) in (int, float) and 0 <= value < _MOST):
            _refuse(name, value)
    for name in _COUNTS:
        value = record[name]
        if value is not None and not (type(value) is int and 0 <= value < _MOST):
            _refuse(name, value)
    for name in _SWITCHES:
        if type(record[name]) is not bool:
            _refuse(name, record[name])
    if type(record["request_id"]) is not str or not is_request_id(record["request_id"]):  # it is kept: none without end
        _refuse("request_id", record["request_id"])
    if type(record["state"]) is not str:
        _refuse("state", record["state"])
    words = {name: record[name] for name in ("model", "error_code", "disconnect_phase")}
    for name, value in {**words, "operation": record.get("operation")}.items():  # which older records have not
        if value is not None and type(value) is not str:
            _refuse(name, value)
    if type(record["attempt"]) is not int:
        _refuse("attempt", record["attempt"])
    if record["outcome"] not in _OUTCOMES:
        _refuse("outcome", record["outcome"])
    if record["side"] not in _SIDES:
        _refuse("side", record["side"])
    if (record["outcome"] == "completed") != (record["error_code"] is None):
        _refuse("error_code", record["error_code"])


def _refuse(name: str, value: object) -> None:
    raise NotARecordError(f"no record: {name} is {_shown(value)}")


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
