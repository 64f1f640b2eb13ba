"""Tool calls put together from the deltas of a stream, or taken from a whole answer (the TOOL rules)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lastword._envelopes import shown
from lastword._outcome import ToolCall

_Key = tuple[int, int]  # choice and index within it


class ToolCallAssembly:
    """Every call that has begun, whole or not; nothing is repaired."""

    __slots__ = ("_held", "_ids", "_latest", "_next")

    def __init__(self) -> None:
        self._held: dict[_Key, dict[str, Any]] = {}
        self._ids: dict[tuple[int, str], _Key] = {}
        self._latest: dict[int, _Key] = {}
        self._next: dict[int, int] = {}

    def add(self, choice: int, calls: object, *, whole: bool) -> None:
        """Take the ``tool_calls`` member of a delta, or (``whole``) of a message."""
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict):
                continue
            function = call.get("function")
            function = function if isinstance(function, dict) else {}
            key = (
                (choice, position) if whole else self._key(choice, call)
            )  # a whole answer's index may be the same in all
            held = self._held.setdefault(key, {"id": None, "name": "", "arguments": []})
            held["id"] = held["id"] or shown(call.get("id") or "") or None
            held["name"] = held["name"] or shown(function.get("name") or "")
            arguments = function.get("arguments")
            if arguments:
                held["arguments"].append(shown(arguments))

    def all(self) -> list[ToolCall]:
        """The calls in the order of their choices and indexes."""
        return [
            ToolCall(held["id"], held["name"], "".join(held["arguments"]), choice, index)
            for (choice, index), held in sorted(self._held.items())
        ]

    def _key(self, choice: int, call: Mapping[str, Any]) -> _Key:
        """Where a delta belongs.  Some servers send no index: then a new id is a new call, and no id the last one."""
        index, id_ = call.get("index"), shown(call.get("id") or "")
        latest = self._latest.get(choice)
        if index.__class__ is int:
            key = (choice, index)
        elif id_:
            key = self._ids.get((choice, id_)) or (choice, self._next.get(choice, 0))
        else:
            key = latest or (choice, 0)
        if id_:
            self._ids.setdefault((choice, id_), key)
        self._latest[choice] = key
        self._next[choice] = max(self._next.get(choice, 0), key[1] + 1)
        return key
