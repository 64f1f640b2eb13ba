"""OpenAI's chunks and answers as objects (several libraries have them), read as its documentation shows."""

from __future__ import annotations

from typing import Any

from caller import Heard

RUN_TOOLS = ("tool_calls", "function_call", "stop")  # with these a careful caller runs what was called


class Choices:
    """Puts together what the choices of an answer say."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._texts: dict[str, str] = {}
        self._calls: dict[int, dict[int, dict[str, Any]]] = {}
        heard.members |= {"texts": self._texts, "finish_reasons": {}, "tool_calls": []}

    def chunk(self, chunk: Any) -> None:
        """A chunk of a stream; one without choices (usage, say) is passed over, as is usual."""
        for choice in chunk.choices or ():
            delta = getattr(choice, "delta", None)
            self._say(choice, choice.text if delta is None else delta.content)
            self._call(choice, getattr(delta, "tool_calls", None) or ())
        self._usage(chunk)
        self._heard.event_over()

    def answer(self, answer: Any) -> None:
        """An answer that came whole.  What is missing in it raises what it raises for everybody."""
        self._say(answer.choices[0], "")
        for choice in answer.choices:
            message = getattr(choice, "message", None)
            self._say(choice, choice.text if message is None else message.content)
            for each in getattr(message, "tool_calls", None) or ():
                function = each.function
                call = {"id": each.id, "name": function.name, "arguments": function.arguments}
                self._heard.members["tool_calls"].append(call)
        self._usage(answer)

    def _say(self, choice: Any, text: str | None) -> None:
        index = str(choice.index)
        self._texts[index] = self._texts.get(index, "") + (text or "")
        self._heard.text = self._texts.get("0", "")
        if choice.finish_reason:
            self._heard.members["finish_reasons"][index] = choice.finish_reason

    def _call(self, choice: Any, parts: Any) -> None:
        calls = self._calls.setdefault(choice.index, {})
        for part in parts:
            call = calls.setdefault(part.index, {"id": part.id, "name": "", "arguments": ""})
            call["name"] += part.function.name or ""
            call["arguments"] += part.function.arguments or ""
        if choice.finish_reason in RUN_TOOLS:
            self._heard.members["tool_calls"] += self._calls.pop(choice.index).values()

    def _usage(self, source: Any) -> None:
        usage = getattr(source, "usage", None)
        if usage:
            self._heard.members["usage"] = usage.model_dump(exclude_unset=True, exclude_none=True)
