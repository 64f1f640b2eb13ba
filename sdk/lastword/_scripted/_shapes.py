"""The exchanges that tests write most often, in the vector format: whole streams, whole answers, failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastword._scripted._script import check_end

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lastword._scripted._script import Ending

_MODEL = "scripted"


def chunk(
    text: str | None = None, *, finish_reason: str | None = None, index: int = 0, **delta: object
) -> dict[str, object]:
    """Give one ``chat.completion.chunk`` with this text (and other delta fields) for one choice."""
    content: dict[str, object] = {} if text is None else {"content": text}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": _MODEL,
        "choices": [{"index": index, "delta": {**content, **delta}, "finish_reason": finish_reason}],
    }


def stream(
    *texts: str,
    finish_reason: str | None = "stop",
    done: bool = True,
    end: Ending = "complete",
    then: Sequence[Mapping[str, object]] = (),
    headers: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Give a streamed chat answer: a role chunk, one chunk a text, the finish, ``[DONE]``, the end of the wire.

    ``end`` is ``complete``, ``truncate`` (FIN in mid-answer), ``reset`` (RST) or ``stall`` (silence until the client
    leaves); any but ``complete`` leaves finish and ``[DONE]`` out, since the wire broke before them.
    ``finish_reason=None`` and ``done=False`` leave out one of the two. ``then`` are steps played after the last text.

    Raises ``ValueError`` for another ``end``.
    """
    check_end(end)
    steps: list[Mapping[str, object]] = [{"data": chunk("", role="assistant")}]
    steps += [{"data": chunk(text)} for text in texts]
    steps += then
    if end == "complete":
        steps += [{"data": chunk(finish_reason=finish_reason)}] if finish_reason is not None else []
        steps += [{"data": "[DONE]"}] if done else []
    steps.append({"end": end})
    return {"status": 200, "headers": dict(headers or {}), "steps": steps}


def answer(text: str, *, finish_reason: str = "stop", headers: Mapping[str, object] | None = None) -> dict[str, object]:
    """Give a chat completion that is not streamed."""
    body = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1,
        "model": _MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    return {"status": 200, "headers": dict(headers or {}), "framing": "content-length", "steps": [{"json": body}]}


def failure(
    status: int, code: str, message: str = "scripted failure", *, headers: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Give an error answer in OpenAI's shape."""
    body = {"error": {"message": message, "type": code, "param": None, "code": code}}
    return {"status": status, "headers": dict(headers or {}), "framing": "content-length", "steps": [{"json": body}]}
