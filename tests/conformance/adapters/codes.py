"""From what a library says of an error to a code of the contract, by the same rule for every library.

First a word that the library hands over as the error's code, as the contract translates it, or as it stands; then a number
that it hands over as the code, or the HTTP status; and last its exception class, by the table at the top of each adapter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_CONTRACT = Path(__file__).parents[3] / "contract"
_DIALECTS = json.loads((_CONTRACT / "dialects.json").read_text(encoding="utf-8"))
WORDS: Mapping[str, str] = _DIALECTS["code_aliases"]  # insufficient_quota: quota_exceeded
STATUSES: Mapping[str, str] = _DIALECTS["status_codes"]  # 503: engine_unavailable
_REGISTRY = json.loads((_CONTRACT / "registry.json").read_text(encoding="utf-8"))
OUTCOMES: Mapping[str, str] = {each["code"]: each["outcome"] for each in _REGISTRY["codes"]}


def failed(by_class: str, *, code: Any = None, status: Any = None, **said: Any) -> dict[str, Any]:
    """A call that ended in an error; ``said`` are the members of ``outcome.json`` that the library has for it."""
    word = WORDS.get(str(code), str(code))
    if code is None or not re.fullmatch("[a-z]+(_[a-z]+)*", word):
        word = _of_number(code) or _of_number(status) or by_class
        if word == "not_found" and said.get("param") == "model":
            word = "model_not_found"
    if isinstance(status, int):
        said["status"] = status
    plain = {name: value for name, value in said.items() if value is None or isinstance(value, str | int)}  # bodies lie
    return {"outcome": OUTCOMES.get(word, "failed"), "code": word, **plain}


def _of_number(number: Any) -> str | None:
    rest = {"4": "invalid_request_error", "5": "internal_server_error"} if re.fullmatch("[45]..", str(number)) else {}
    return STATUSES.get(str(number)) or rest.get(str(number)[:1])


def class_code(error: BaseException, table: Mapping[Any, str]) -> str:
    """The code of the first class in the table that the error is an instance of; what no table has could not be read."""
    return next((code for kind, code in table.items() if isinstance(error, kind)), "malformed_response")
