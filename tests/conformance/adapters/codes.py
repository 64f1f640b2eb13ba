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

_DIALECTS = json.loads(Path(__file__).parents[3].joinpath("contract/dialects.json").read_text(encoding="utf-8"))
WORDS: Mapping[str, str] = _DIALECTS["code_aliases"]  # insufficient_quota: quota_exceeded
STATUSES: Mapping[str, str] = _DIALECTS["status_codes"]  # 503: engine_unavailable
_OUTCOMES = {
    **dict.fromkeys(("stream_incomplete", "malformed_response", "unknown_finish_reason"), "incomplete"),
    **dict.fromkeys(("cancelled", "client_disconnected"), "cancelled"),
}


def failed(by_class: str, *, code: Any = None, status: int | None = None, **said: Any) -> dict[str, Any]:
    """A call that ended in an error; ``said`` are the members of ``outcome.json`` that the library has for it."""
    word = WORDS.get(str(code), str(code))
    if code is None or not re.fullmatch("[a-z]+(_[a-z]+)*", word):
        word = STATUSES.get(word) or STATUSES.get(str(status)) or by_class
        if word == "not_found" and said.get("param") == "model":
            word = "model_not_found"
    known = {} if status is None else {"status": status}
    return {"outcome": _OUTCOMES.get(word, "failed"), "code": word, **known, **said}


def class_code(error: BaseException, table: Mapping[Any, str]) -> str:
    """The code of the first class in the table that the error is an instance of; what no table has could not be read."""
    return next((code for kind, code in table.items() if isinstance(error, kind)), "malformed_response")
