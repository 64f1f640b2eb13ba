"""An adapter's process as the runner handles it: what goes over its pipes, and what is left of it afterwards."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.command import adapter

from lastword._contract import load
from lastword.conformance._cases import select
from lastword.conformance._results import ConformanceError, Verdict
from lastword.conformance._schemas import violations
from lastword.conformance.client._adapter import Adapter, AdapterFault
from lastword.conformance.client._player import call_of
from lastword.conformance.client._pool import AdapterPool

HELLO = '{"protocol": 1, "name": "n", "version": "1", "language": "sh", "capabilities": []}'
CASE: dict[str, Any] = {
    "base_url": "http://127.0.0.1:9/v1",
    "api_key": "k",
    "call": call_of({"call": {"stream": True}}),
}


def script(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def answering(*lines: str, then: str = "") -> list[str]:
    """An adapter that answers each line that it reads with the next of these, whatever it was asked."""
    return script(
        f"import sys, time\nfor line in {lines!r}:\n    input()\n    print(line, flush=True)\n{then or 'input()'}"
    )


@contextmanager
def adapter_of(command: list[str]) -> Iterator[Adapter]:
    """An adapter that has shaken hands; nothing is left of it."""
    child = Adapter(command)
    try:
        child.start(20)
        yield child
    finally:
        child.dispose()


def test_every_line_of_the_protocol_is_in_its_schema(tmp_path: Path) -> None:
    said = tmp_path / "said.jsonl"
    inner = adapter("lies")
    recorder = f"""
import subprocess, sys, threading
child = subprocess.Popen({inner!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def copy(source, target, log):
    for line in source:
        log.write(line); log.flush(); target.write(line); target.flush()
    target.close()
with open({str(said)!r}, "ab") as log:
    back = threading.Thread(target=copy, args=(child.stdout, sys.stdout.buffer, log))
    back.start()
    copy(sys.stdin.buffer, child.stdin, log)
    back.join()
"""
    with AdapterPool(script(recorder), size=1) as pool:
        for case in select("client", run=["ending/whole@event", "answer/whole"]).cases:
            pool.play(case)
    messages = [json.loads(line) for line in said.read_text(encoding="utf-8").splitlines()]
    assert [each.get("cmd", "hello" if "protocol" in each else "answer") for each in messages] == [
        *("start", "hello"),
        *(4 * ["run", "answer"]),
        "stop",
    ]
    for message in messages:
        assert violations("adapter", message) == []
        part = message.get("cmd") or ("hello" if "protocol" in message else "answer")
        assert violations(f"adapter#/$defs/{part}", message) == []


@pytest.mark.parametrize(
    "message",
    [
        {"cmd": "begin"},
        {"cmd": "start", "protocol": 2},
        {"cmd": "run", "seq": 0, "case": CASE},
        {
            "cmd": "run",
            "seq": 1,
            "case": {**CASE, "call": {**CASE["call"], "cancel": {"after_ms": 1, "after_events": 1}}},
        },
        {"cmd": "run", "seq": 1, "case": {**CASE, "call": {"stream": True}}},
        {"seq": 1},
        {"seq": 1, "result": {"outcome": "completed", "code": None}, "unable": "x"},
        {"seq": 1, "result": {"outcome": "done", "code": None}},
        {"seq": 1, "unable": ""},
        {**json.loads(HELLO), "capabilites": []},
        {**json.loads(HELLO), "capabilities": ["Retry"]},
    ],
)
def test_the_schema_refuses_what_is_no_line_of_the_protocol(message: object) -> None:
    assert violations("adapter", message)


def test_half_a_line_is_no_answer() -> None:
    command = answering(HELLO, then="input(); print('{\"seq\":', end='', flush=True); time.sleep(60)")
    with adapter_of(command) as child, pytest.raises(AdapterFault, match=r"no answer within 0\.5 s") as caught:
        child.ask(CASE, 0.5)
    assert caught.value.verdict is Verdict.HANG


def test_an_adapter_that_does_not_read_cannot_block_the_runner() -> None:
    with adapter_of(answering(HELLO, then="time.sleep(60)")) as child:
        with pytest.raises(AdapterFault, match="no answer"):
            child.ask({**CASE, "api_key": "k" * 1_000_000}, 0.5)
        child.leave()


def test_a_large_case_and_a_large_answer_go_through() -> None:
    echo = f"import json\nprint('{HELLO}' if input() else '', flush=True)\n"
    echo += "message = json.loads(input()); text = message['case']['api_key']\n"
    echo += "print(json.dumps({'seq': 1, 'result': {'outcome': 'completed', 'code': None, 'text': text}}), flush=True)"
    with adapter_of(script(echo)) as child:
        assert child.ask({**CASE, "api_key": "k" * 3_000_000}, 20)["result"]["text"] == "k" * 3_000_000
        child.settle()
        assert child.end(time.monotonic()) is None


def test_whoever_waits_for_an_answer_wakes_up_when_the_adapter_is_killed() -> None:
    orphaned = "import subprocess; subprocess.Popen(['sleep', '3'], start_new_session=True); time.sleep(60)"
    with adapter_of(answering(HELLO, then=orphaned)) as child:  # the pipe stays open: no EOF will come
        threading.Timer(0.3, child.kill).start()
        with pytest.raises(AdapterFault, match="the adapter was ended by SIGKILL without an answer"):
            child.ask(CASE, 30)


def test_an_answer_to_an_earlier_case_is_told_from_a_number_of_its_own() -> None:
    result = '{"seq": 1, "result": {"outcome": "completed", "code": null}}'
    with adapter_of(answering(HELLO, result, result)) as child:
        child.ask(CASE, 20)
        with pytest.raises(AdapterFault, match="it answered an earlier case again"):
            child.ask(CASE, 20)


def test_crashes_and_restarts_leave_no_descriptors_and_no_threads() -> None:
    cases = select("client", run=["ending/whole", "answer/whole"]).cases
    violations("adapter", {})  # loads what it needs
    gc.collect()
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    with AdapterPool(adapter("exits"), size=2) as pool:
        verdicts = [pool.play(case).verdict for case in cases]
    assert set(verdicts) == {Verdict.CRASH}
    with pytest.raises(ConformanceError), AdapterPool(adapter("banner"), size=2):
        pass
    gc.collect()
    after = len(os.listdir("/proc/self/fd")), threading.active_count()
    assert [now <= then for now, then in zip(after, before, strict=True)] == [True, True]  # others' may end meanwhile


def test_an_adapter_that_does_not_start_again_ends_the_run(tmp_path: Path) -> None:
    """It began well, so that the run began; now there is nothing to play with."""
    first = tmp_path / "first"
    source = f"import os, runpy, sys\nsys.path.insert(0, {str(Path(adapter('exits')[1]).parent)!r})\n"
    source += f"if os.path.exists({str(first)!r}): sys.exit('worn out')\nopen({str(first)!r}, 'w').close()\n"
    source += f"runpy.run_path({adapter('exits')[1]!r}, run_name='__main__')"
    one, *others = select("client", run=["ending/whole", "answer/whole"]).cases
    with AdapterPool(script(source), size=1) as pool:
        assert pool.play(one).verdict is Verdict.CRASH
        with pytest.raises(ConformanceError, match=r"(?s)At start: the adapter ended with exit status 1.*worn out"):
            pool.play(others[0])


def test_capabilities_are_the_registrys() -> None:
    known = [each["capability"] for each in load("registry.json")["capabilities"] if each["of"] == "client"]
    hello = {**json.loads(HELLO), "capabilities": known}
    child = Adapter(answering(json.dumps(hello)))
    assert child.start(20).capabilities == set(known)
    child.dispose()
