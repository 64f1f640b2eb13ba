"""The scripted engine behind a server under test: one address for a run, a script for each case, nothing of the one before."""

from __future__ import annotations

import http.client
import time

import pytest

from lastword.conformance._results import ConformanceError
from lastword.conformance.server._engine import Engine
from lastword.testing import answer, stream


def ask(engine: Engine, *, case: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", engine.port, timeout=10)
    try:
        connection.request("POST", "/v1/chat/completions", b"{}", {"x-conformance-case": case} if case else {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_each_case_has_its_own_script() -> None:
    """With or without the header that names it; between cases there is a list of models."""
    with Engine() as engine:
        assert b'"data"' in ask(engine)[1]
        engine.begin("a/one", [answer("first")])
        assert b"first" in ask(engine)[1]
        engine.finish()
        engine.begin("a/two", [answer("second")])
        assert b"second" in ask(engine, case="a/two")[1]
        assert len(engine.requests) == 1


def test_a_request_of_a_case_that_is_over_is_a_stray() -> None:
    """It is turned away, and takes nothing of the script."""
    with Engine() as engine:
        engine.begin("a/two", [answer("second")])
        status, body = ask(engine, case="a/one")
        assert (status, b"this case is over" in body, engine.requests) == (400, True, [])


@pytest.mark.parametrize(("then", "status"), [("refuses", 400), ("repeats", 200), ("answers", 200)])
def test_what_comes_after_the_script(then: str, status: int) -> None:
    """A refusal, the last exchange again, or a whole answer; each is counted."""
    with Engine() as engine:
        engine.begin("a/one", [answer("first")], then=then)  # type: ignore[arg-type]
        assert ask(engine)[0] == 200
        later, body = ask(engine)
        assert (later, b"first" in body, len(engine.requests)) == (status, then == "repeats", 2)


def test_nobody_listens_for_one_case() -> None:
    """The port stays the engine's, and the next case is answered there again."""
    with Engine() as engine:
        port = engine.port
        engine.begin("a/one", [], listening=False)
        with pytest.raises(ConnectionRefusedError):
            ask(engine)
        engine.finish()
        engine.begin("a/two", [answer("second")])
        assert b"second" in ask(engine)[1]
        assert engine.port == port


def test_a_case_that_is_over_is_cut_off_and_a_silence_can_be_ended() -> None:
    """No script goes on into the next case."""
    with Engine() as engine:
        engine.begin("a/one", [{**stream("a"), "before": [{"delay_ms": 30000}]}])
        began = time.monotonic()
        engine.hurry()
        assert b"[DONE]" in ask(engine)[1]
        assert time.monotonic() - began < 10
        engine.finish()
        assert engine.at_work == 0


def test_a_port_that_is_taken_is_named() -> None:
    """In one sentence, with what to do."""
    with (
        Engine() as engine,
        pytest.raises(ConformanceError, match=f"--upstream-port {engine.port}: "),
        Engine(engine.port),
    ):
        pass
