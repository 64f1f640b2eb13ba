"""Where times and tokens of a record come from: the engine's own clock, or its word in the answer."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from lastword_shim.account.lifecycle import Lifecycle
from lastword_shim.engine import Ticket
from lastword_shim.engine.stated import read_stated

TIMINGS = {"cache_n": 4, "prompt_n": 11, "prompt_ms": 20.0, "predicted_n": 48, "predicted_ms": 310.5}
METRICS = {"queue_time_ms": 12.5, "time_to_first_token_ms": 20.0, "generation_time_ms": 300.0, "mean_itl_ms": None}


@pytest.mark.parametrize(
    ("extras", "queue", "generation", "prompt", "completion"),
    [
        ({}, None, None, None, None),
        ({"timings": TIMINGS}, None, 0.3105, 15, 48),
        ({"metrics": METRICS}, 0.0125, 0.3, None, None),
        ({"metrics": METRICS, "timings": TIMINGS}, 0.0125, 0.3, 15, 48),
        ({"timings": {"prompt_n": 0, "predicted_n": 0, "predicted_ms": 0}}, None, 0.0, 0, 0),
    ],
)
def test_what_an_engine_says_of_itself(
    extras: dict[str, Any], queue: float | None, generation: float | None, prompt: int | None, completion: int | None
) -> None:
    """In milliseconds and tokens, by vLLM's names and llama.cpp's."""
    ticket = Ticket("r")
    read_stated(ticket, extras)
    found = (ticket.queue_seconds, ticket.generation_seconds, ticket.prompt_tokens, ticket.completion_tokens)
    assert found == (queue, generation, prompt, completion)


@pytest.mark.parametrize("value", [-1, True, "5", float("nan"), float("inf"), 10**400, [], None])
def test_what_is_no_number_is_not_believed(value: Any) -> None:
    """The wire can say anything."""
    ticket = Ticket("r")
    read_stated(ticket, {"metrics": {"queue_time_ms": value, "generation_time_ms": value}, "timings": value})
    read_stated(ticket, {"timings": dict.fromkeys(TIMINGS, value)})
    assert (ticket.queue_seconds, ticket.generation_seconds) == (None, None)
    assert (ticket.prompt_tokens, ticket.completion_tokens) == (None, None)


def test_what_is_known_already_is_known_better() -> None:
    """From inside the engine's process."""
    ticket = Ticket("r", prompt_tokens=1, completion_tokens=2, queue_seconds=3.0, generation_seconds=4.0)
    read_stated(ticket, {"metrics": METRICS, "timings": TIMINGS})
    found = (ticket.prompt_tokens, ticket.completion_tokens, ticket.queue_seconds, ticket.generation_seconds)
    assert found == (1, 2, 3.0, 4.0)


def test_the_record_prefers_the_engines_clock() -> None:
    """Its queue is added to the way there; its generation replaces what was seen here."""
    now = [100.0]
    ticket = Ticket("r")
    life = Lifecycle("r", 1, "/v1/chat/completions", ticket, clock=lambda: now[0])
    ticket.submitted(at=100.5)
    ticket.produced(1, at=102.0)
    ticket.produced(9, at=105.0)
    life.ended_at = now[0] = 106.0
    assert (life.record(None, 200)["queue_time_ms"], life.record(None, 200)["generation_time_ms"]) == (2000, 3000)
    ticket.queue_seconds, ticket.generation_seconds = 0.25, 2.5
    assert (life.record(None, 200)["queue_time_ms"], life.record(None, 200)["generation_time_ms"]) == (750, 2500)


def stats(queued: float, scheduled: float, first: float, last: float) -> SimpleNamespace:
    return SimpleNamespace(queued_ts=queued, scheduled_ts=scheduled, first_token_ts=first, last_token_ts=last)


class TestVllm:
    """Its RequestStateStats; the module itself needs no vLLM, but its package does."""

    @pytest.fixture
    def read_times(self) -> Any:
        import importlib.util
        from pathlib import Path

        path = Path(__file__).parents[2] / "server_shim/lastword_shim/engine/vllm/times.py"
        spec = importlib.util.spec_from_file_location("times_of_vllm", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.read_times

    @pytest.fixture
    def ticket(self) -> Ticket:
        ticket = Ticket("r")
        ticket.submitted(at=time.monotonic() - 10)
        return ticket

    def test_durations_of_several_sequences_run_from_the_first_to_the_last(
        self, read_times: Any, ticket: Ticket
    ) -> None:
        """Whenever each was looked at; a clock that began elsewhere does not matter."""
        read_times(ticket, [stats(5000.0, 5001.0, 5002.0, 5003.0), None])
        read_times(ticket, [stats(5000.5, 5001.5, 5002.5, 5004.5), stats(5000.0, 0.0, 0.0, 0.0)])
        assert (ticket.queue_seconds, ticket.generation_seconds) == (1.0, 2.5)
        assert ticket.submitted_at is not None
        assert ticket.first_token_at == pytest.approx(ticket.submitted_at + 2.0)

    @pytest.mark.parametrize(
        "read",
        [
            [stats(0.0, 0.0, 0.0, 0.0)],
            [object()],
            [stats(5000.0, 100.0, 101.0, 102.0)],
            [stats(100.0, 101.0, 102.0, 103.0), stats(90000.0, 90001.0, 90002.0, 90003.0)],
        ],
    )
    def test_what_cannot_be_a_duration_is_left_alone(self, read_times: Any, ticket: Ticket, read: Any) -> None:
        """Not told (``--disable-log-stats``), in another order, or of engines whose clocks differ."""
        read_times(ticket, read)
        assert ticket.generation_seconds is None

    def test_nothing_is_told_before_the_first_token(self, read_times: Any, ticket: Ticket) -> None:
        """The queue is known as soon as it is over."""
        read_times(ticket, [stats(50.0, 51.0, 0.0, 0.0)])
        assert (ticket.queue_seconds, ticket.first_token_at, ticket.generation_seconds) == (1.0, None, None)
