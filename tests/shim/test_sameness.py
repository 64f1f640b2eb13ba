"""Events that differ only in their text are not read one by one, and nothing else passes for one of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword._completeness import StreamTracker
from lastword._sse import ServerSentEvent
from lastword_shim.protocol.readings import StreamReading
from lastword_shim.protocol.sameness import Sameness


def chat(text: Any = "a", *, finish: str | None = None, delta: Any = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text} if delta is None else delta, "finish_reason": finish}
    return {"id": "c", "created": 1, "model": "m", "choices": [choice], **more}


def frame(chunk: Any, *, spaced: bool = True) -> bytes:
    return b"data: " + json.dumps(chunk, separators=None if spaced else (",", ":")).encode() + b"\n\n"


def learned(chunk: Any, body: bytes | None = None) -> Sameness:
    sameness = Sameness()
    sameness.learn(frame(chunk) if body is None else body, chunk)
    return sameness


COMPLETION = {"id": "c", "choices": [{"index": 0, "text": "a", "finish_reason": None}]}
KNOWN = learned(chat())


@pytest.mark.parametrize(
    "text", ["", "b", "a longer one", 'say "x"', "ä\n\t\\ 😀", "\ud800", "}]}", '","finish_reason":"stop']
)
def test_another_text_is_the_same(text: str) -> None:
    """However JSON writes it."""
    escaped, plain = (
        json.dumps(text, ensure_ascii=escapes)[1:-1].encode("utf-8", "surrogatepass") for escapes in (True, False)
    )
    assert KNOWN.text_of(frame(chat(text))) == escaped
    assert KNOWN.text_of(frame(chat("?")).replace(b"?", plain)) == plain
    assert learned(chat(), frame(chat(), spaced=False)).text_of(frame(chat(text), spaced=False)) == escaped
    completion = {"id": "c", "choices": [{"index": 0, "text": text, "finish_reason": None}]}
    assert learned(COMPLETION).text_of(frame(completion)) == escaped
    assert learned(chat("")).text_of(frame(chat(text))) == escaped


@pytest.mark.parametrize(
    "body",
    [
        frame(chat("b", finish="stop")),
        frame(chat("b", usage={"completion_tokens": 1})),
        frame(chat(["b"])),
        frame(chat("b", delta={"content": "b", "tool_calls": [{}]})),
        frame({**chat("b"), "created": 2}),
        frame(chat("b"))[:-1],
        frame(chat("b")) + b"\n",
        frame(chat("b")) * 2,
        b": comment\n\n" + frame(chat("b")),
        frame(chat("b")).replace(b"\n\n", b"\r\n\r\n"),
        frame(chat("b")).replace(b'"b"', b'"b\nc"'),
        frame(chat("b")).replace(b'"b"', b'"\\x"'),
        frame(chat("b")).replace(b'"b"', b'"\\u12"'),
        frame(chat("b")).replace(b'"b"', b'"b", "content": "c"'),
        frame(chat("b" * 70_000)),
        b"data: [DONE]\n\n",
        b"",
    ],
)
def test_anything_else_is_not(body: bytes) -> None:
    assert KNOWN.text_of(body) is None


@pytest.mark.parametrize(
    "chunk",
    [
        chat("a", finish="stop"),
        chat("a", usage={"completion_tokens": 1}),
        chat(delta={"role": "assistant", "content": "a", "reasoning": "b"}),
        chat(delta={"content": ["a"]}),
        {**chat(), "choices": [chat()["choices"][0]] * 2},
        {**chat(), "choices": []},
        {**chat(), "choices": [None]},
        {**chat(), "choices": [{"index": 0, "delta": {"content": "a"}, "text": "a"}]},
        {"object": "x", "delta": "a"},
    ],
)
def test_what_does_more_than_to_add_text_is_no_pattern(chunk: dict[str, Any]) -> None:
    assert learned(chunk).text_of(frame(chunk)) is None


def test_a_place_that_only_looks_like_the_texts_is_none() -> None:
    """Another member of that name before it, the same member twice, an event of several lines, a byte order mark."""
    assert learned(chat(), frame({"content": "z", **chat()})).text_of(frame({"content": "b", **chat()})) is None
    twice = frame(chat()).replace(b'"content": "a"', b'"content": "x", "content": "a"')
    assert learned(chat(), twice).text_of(twice) is None
    for body in (b"event: x\n" + frame(chat()), b"\xef\xbb\xbf" + frame(chat())):
        assert learned(chat(), body).text_of(body) is None


def test_a_stream_whose_events_all_differ_is_not_learned_for_ever() -> None:
    sameness = Sameness()
    for number in range(20):
        sameness.learn(frame({**chat(), "created": number}), {**chat(), "created": number})
    assert sameness.text_of(frame({**chat("b"), "created": 19})) is None


PIECES = st.lists(
    st.one_of(
        st.text(max_size=5).map(lambda text: frame(chat(text))),
        st.text(max_size=5).map(lambda text: frame(chat(text), spaced=False)),
        st.sampled_from(
            [
                frame(chat("b", finish="stop")),
                frame(chat("b", delta={"content": "b", "role": "assistant"})),
                frame({**chat("b"), "choices": [{"index": 1, "delta": {"content": "b"}}]}),
                frame({"choices": [], "usage": {"completion_tokens": 3}}),
                frame({"error": {"message": "m"}}),
                b": keep-alive\n\n",
                b"data: {\n\n",
                b"data: [DONE]\n\n",
                frame(chat("b"))[:20],
                frame(chat("b"))[20:],
                frame(chat("b")) + b"\n",
                frame(chat("b")).replace(b"\n", b"\r\n"),
                frame(chat("b")) * 2,
            ]
        ),
    ),
    max_size=12,
)


class Never(Sameness):
    """Each event is read."""

    def text_of(self, body: bytes) -> None:
        return None


def read(pieces: list[bytes], *, each: bool) -> tuple[Any, ...]:
    """All that can be seen of a stream that was fed these."""
    content: list[int] = []
    reading = StreamReading(choices=1, on_content=lambda: content.append(1))
    if each:
        reading._sameness = Never()
    left = b""
    for number, piece in enumerate([*pieces, b""]):
        leaving, verdict = reading.feed(piece, last=number == len(pieces))
        left += leaving
        if verdict is not None:
            break
    return left, verdict, len(content), reading.finish_reasons, reading.usage


@given(PIECES)
def test_a_stream_is_judged_as_if_each_event_were_read(pieces: list[bytes]) -> None:
    """Whatever comes, in whatever pieces: the same bytes leave, with the same verdict and the same account."""
    assert read(pieces, each=False) == read(pieces, each=True)


def test_the_events_of_a_stream_are_indeed_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or all of this were for nothing."""
    seen: list[object] = []
    accept = StreamTracker.accept

    def counted(tracker: StreamTracker, event: ServerSentEvent) -> dict[str, Any] | None:
        seen.append(event)
        return accept(tracker, event)

    monkeypatch.setattr(StreamTracker, "accept", counted)
    first = chat(delta={"role": "assistant", "content": ""})
    pieces = [frame(first), *(frame(chat(f"word {number}")) for number in range(50)), *[frame(chat(""))] * 3]
    pieces.append(frame(chat("", finish="stop")))
    left, verdict, content, *_ = read([*pieces, b"data: [DONE]\n\n"], each=False)
    assert (left, content, verdict.error) == (b"".join(pieces), 50, None)
    assert len(seen) == 4
