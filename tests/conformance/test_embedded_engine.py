"""The embedded engine: OpenAI-compatible, faulty on request, and quiet once its client has left."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from lastword import Client, ContextLengthExceeded, LastwordError, RetryPolicy
from lastword.demo._endings import ask_stock
from lastword.demo._servers import DemoError, engine

BODY: dict[str, Any] = {"model": "embedded", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 6}
WORDS = "the quick brown fox " * 500


@pytest.fixture(scope="module")
def bare() -> Iterator[str]:
    with engine("--bare", "--pace", "0.002") as url:
        yield url


@pytest.fixture(scope="module")
def shimmed() -> Iterator[str]:
    with engine("--pace", "0.002") as url:
        yield url


def post(
    url: str, path: str = "/chat/completions", *, ending: str = "complete", patience: float = 5.0, **body: object
) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=patience) as client:
        return client.post(url + path, json={**BODY, **body}, headers={"x-demo-ending": ending})


def events(response: httpx.Response) -> list[Any]:
    data = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    return [each if each == "[DONE]" else json.loads(each) for each in data]


def metric(url: str, name: str) -> float:
    text = httpx.get(url.removesuffix("/v1") + "/metrics", trust_env=False).text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"vllm:{name}{{"))


def test_an_answer_is_the_same_streamed_and_whole(bare: str) -> None:
    whole = post(bare, seed=7).json()
    *chunks, usage, done = events(post(bare, seed=7, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks)
    assert done == "[DONE]"
    assert text == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"] == "length"
    assert usage["choices"] == []
    assert usage["usage"] == whole["usage"] == {"prompt_tokens": 1, "completion_tokens": 6, "total_tokens": 7}


def test_completions_answer_each_prompt_n_times(bare: str) -> None:
    answer = post(bare, "/completions", prompt=["a", "b"], n=2).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert all(choice["text"] and choice["finish_reason"] == "length" for choice in answer["choices"])


def test_without_max_tokens_it_stops_by_itself(bare: str) -> None:
    assert post(bare, max_tokens=None).json()["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("request_", "status", "kind"),
    [
        ({"model": "other"}, 404, "NotFoundError"),
        ({"messages": None}, 400, "Bad Request"),
        ({"max_tokens": -1}, 400, "BadRequestError"),
        ({"n": 0.5}, 400, "BadRequestError"),
        ({"messages": [{"role": "user", "content": WORDS * 2}]}, 400, "BadRequestError"),
        ({"ending": "unheard-of"}, 400, "BadRequestError"),
        ({"ending": "engine-dead"}, 500, "InternalServerError"),
        ({"ending": "overloaded"}, 503, "Service Unavailable"),
        ({"ending": "late-error"}, 400, "BadRequestError"),
    ],
)
def test_refusals_are_written_as_vllm_writes_them(bare: str, request_: dict[str, Any], status: int, kind: str) -> None:
    response = post(bare, **request_)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["type"]) == (status, status, kind)


def test_other_routes(bare: str) -> None:
    with httpx.Client(base_url=bare, trust_env=False) as client:
        assert client.get("/models").json()["data"][0]["id"] == "embedded"
        assert client.get("/chat/completions").json() == {"detail": "Method Not Allowed"}
        assert client.get("/nothing").json() == {"detail": "Not Found"}
        assert client.get(bare.removesuffix("/v1") + "/health").status_code == 200


@pytest.mark.parametrize(
    ("ending", "last"),
    [
        ("complete", "[DONE]"),
        ("no-done", "length"),
        ("no-finish", "[DONE]"),
        ("nothing", None),
        ("late-error", "[DONE]"),
        ("error", "[DONE]"),
        ("abort", "[DONE]"),
        ("abort-queued", "[DONE]"),
    ],
)
def test_each_ending_ends_as_it_says(bare: str, ending: str, last: str | None) -> None:
    found = events(post(bare, ending=ending, stream=True))
    end = found[-1]
    assert (end if isinstance(end, str) else end["choices"][0]["finish_reason"]) == last
    reasons = [
        choice["finish_reason"] for each in found if isinstance(each, dict) for choice in each.get("choices", [])
    ]
    assert [reason for reason in reasons if reason] == {
        "complete": ["length"], "no-done": ["length"], "abort": ["abort"]
    }.get(ending, [])  # fmt: skip
    assert [each["error"]["code"] for each in found if "error" in each] == {"late-error": [400], "error": [500]}.get(
        ending, []
    )


def test_endings_without_events(bare: str) -> None:
    assert post(bare, ending="empty", stream=True).content == b""
    assert post(bare, ending="error-200", stream=True).json()["error"]["code"] == 500
    with pytest.raises(httpx.RemoteProtocolError):
        post(bare, ending="cut", stream=True)
    for ending in ("stall", "silent"):
        with pytest.raises(httpx.ReadTimeout):
            post(bare, ending=ending, stream=True, patience=0.5)


@pytest.mark.parametrize("stream", [True, False])
def test_it_stops_when_the_client_leaves(bare: str, stream: bool) -> None:
    with httpx.Client(trust_env=False, timeout=0.3) as client, pytest.raises(httpx.ReadTimeout):
        if not stream:
            client.post(bare + "/chat/completions", json={**BODY, "max_tokens": 1500})
        with client.stream(
            "POST", bare + "/chat/completions", json={**BODY, "max_tokens": 1500, "stream": stream}
        ) as answer:
            next(answer.iter_raw())
            raise httpx.ReadTimeout("left")
    until = time.monotonic() + 2
    while metric(bare, "num_requests_running") and time.monotonic() < until:
        time.sleep(0.02)
    before = metric(bare, "generation_tokens_total")
    time.sleep(0.2)
    assert metric(bare, "generation_tokens_total") == before


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with (
            pytest.raises(
                DemoError, match=rf"cannot listen on 127\.0\.0\.1 port {port}: Address already in use; --port"
            ),
            engine("--port", port),
        ):
            pass


def test_behind_the_shim_no_fault_looks_complete(shimmed: str) -> None:
    for ending in (
        "no-done",
        "no-finish",
        "nothing",
        "empty",
        "error-200",
        "late-error",
        "error",
        "abort",
        "abort-queued",
        "cut",
    ):
        report = ask_stock(shimmed, model="embedded", headers={"x-demo-ending": ending})
        assert not report.complete, ending


def test_the_shim_learns_the_lengths_before_the_queue(shimmed: str) -> None:
    content = "word " * 2000
    with Client(base_url=shimmed, api_key="k") as client, pytest.raises(ContextLengthExceeded) as caught:
        client.chat.completions.create(model="embedded", messages=[{"role": "user", "content": content}], max_tokens=64)
    assert caught.value.details["prompt_tokens"] == 2000
    assert caught.value.details["max_model_len"] == 2048


def test_the_shim_can_tell_what_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LASTWORD_CONTEXT_POLICY", "clamp")
    with engine("--pace", "0.001", "--max-model-len", "10") as url:
        response = post(url, messages=[{"role": "user", "content": "a b c d"}], max_tokens=64)
    assert response.headers["x-lastword-effective-max-tokens"] == "6"
    assert response.json()["usage"]["completion_tokens"] == 6


def test_the_shim_keeps_paths_and_devices_to_itself(shimmed: str) -> None:
    client = Client(base_url=shimmed, api_key="k", retry=RetryPolicy(max_attempts=1))
    with client, pytest.raises(LastwordError) as caught:
        client.chat.completions.create(
            model="embedded", messages=[], max_tokens=1, extra_headers={"x-demo-ending": "leak"}
        )
    assert caught.value.code == "out_of_memory"
    assert "worker.py" not in str(caught.value.raw)
    assert "GiB" not in str(caught.value.raw)
